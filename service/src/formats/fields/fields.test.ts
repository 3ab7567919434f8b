import { readFileSync } from 'node:fs'

import { describe, expect, test } from 'vitest'

import { betaRows } from './betas.ts'
import type { Row } from './field-table.ts'
import { features } from './field-table.ts'
import { fieldTables } from './field-tables.ts'
import { findFeatures, hasUnseenInput, leastWebSearches, mostWebSearches } from './find-features.ts'
import { removeFields } from './remove-fields.ts'
import { toolTypes } from './tool-types.ts'

const formats = ['messages', 'responses', 'chat_completions'] as const
const strict = { passesUnknown: false, keepsCacheTtl: false }
const open = { passesUnknown: true, keepsCacheTtl: true }
const namesOf = (rows: readonly Row[], kind: Row['class']) =>
  rows.filter((row) => row.class === kind).flatMap(({ names }) => names)

/** Servers' own fields by which a caller could get more than it pays for. */
const escapes = [
  'n_predict',
  'max_new_tokens',
  'min_tokens',
  'best_of',
  'extra_body',
  'models',
  'route',
  'fallbacks',
  'preset',
  'priority',
  'chat_template',
  'custom_logit_processor',
  'lora_path',
  'id_slot',
  'prompt_logprobs',
  'guided_regex',
  'n_cmpl',
  'service_tier',
  'speed',
  'inference_geo',
  'plugins',
]

describe.each(formats)('%s', (format) => {
  const table = fieldTables[format]
  const remove = (request: Record<string, unknown>, options = open) =>
    removeFields(table, { request, headers: {} }, options)

  test.each(escapes)('%s is dropped, wherever the request goes', (name) => {
    for (const options of [strict, open]) {
      const { request, removed } = remove({ [name]: 1, model: 'm' }, options)
      expect([request, removed]).toEqual([{ model: 'm' }, [name]])
    }
  })

  test('known fields pass in their order, and unknown ones where the upstream may have them', () => {
    const known = Object.fromEntries(namesOf(table.fields, 'known').map((name) => [name, name]))
    expect(remove(known, strict)).toEqual({ request: known, headers: {}, removed: [] })
    const request = { not_yet_invented: { deep: [1] }, ...known }
    expect(JSON.stringify(remove(request).request)).toBe(JSON.stringify(request))
    expect(remove(request, strict)).toMatchObject({ request: known, removed: ['not_yet_invented'] })
  })

  test('a member of a member is dropped alone', () => {
    const { request, removed } = remove({ structured_outputs: { json: {}, regex: '(a+)+$' } })
    expect(request).toEqual({ structured_outputs: { json: {} } })
    expect(removed).toEqual(['structured_outputs.regex'])
  })

  test('every name is in one row, and in the documentation', () => {
    const page = readFileSync(new URL('../../../../docs/models.md', import.meta.url), 'utf8')
    const documented = page.slice(page.indexOf('## Fields of requests'))
    for (const rows of [table.fields, toolTypes, betaRows]) {
      const names = rows.flatMap((row) => row.names)
      // `modalities` can ask for two features, and then is known.
      expect(
        names.filter((name, at) => names.indexOf(name) !== at && name !== 'modalities'),
      ).toEqual([])
      for (const name of names) expect(documented).toContain(`\`${name}\``)
    }
    for (const feature of features) expect(documented).toContain(`\`${feature}\``)
  })
})

test.each([
  ['messages', { tools: [{ type: 'web_search_20250305' }] }, 'web_search', 'body.tools[0]'],
  [
    'messages',
    { tools: [{ name: 'f' }, { type: 'web_fetch_20250910' }] },
    'web_fetch',
    'body.tools[1]',
  ],
  ['messages', { tools: [{ type: 'code_execution_20250825' }] }, 'code_execution', 'body.tools[0]'],
  ['messages', { tools: [{ type: 'computer_20250124' }] }, 'computer_use', 'body.tools[0]'],
  ['messages', { tools: [{ type: 'mcp_toolset' }] }, 'mcp', 'body.tools[0]'],
  ['messages', { tools: [{ type: 'advisor_20260301' }] }, 'advisor', 'body.tools[0]'],
  ['messages', { mcp_servers: [{ url: 'https://a.example' }] }, 'mcp', 'body.mcp_servers'],
  ['messages', { container: 'c_1' }, 'containers', 'body.container'],
  ['chat_completions', { web_search_options: {} }, 'web_search', 'body.web_search_options'],
  ['chat_completions', { modalities: ['text', 'audio'] }, 'audio_output', 'body.modalities'],
  ['chat_completions', { modalities: ['text', 'image'] }, 'image_output', 'body.modalities'],
  [
    'responses',
    { tools: [{ type: 'web_search_preview_2025_03_11' }] },
    'web_search',
    'body.tools[0]',
  ],
  ['responses', { tools: [{ type: 'image_generation' }] }, 'image_generation', 'body.tools[0]'],
  ['responses', { tools: [{ type: 'code_interpreter' }] }, 'code_execution', 'body.tools[0]'],
  ['responses', { tools: [{ type: 'file_search' }] }, 'file_search', 'body.tools[0]'],
  ['responses', { tools: [{ type: 'computer_use_preview' }] }, 'computer_use', 'body.tools[0]'],
  ['responses', { tools: [{ type: 'mcp' }] }, 'mcp', 'body.tools[0]'],
  [
    'responses',
    { tools: [{ type: 'shell', environment: { type: 'container_auto' } }] },
    'containers',
    'body.tools[0]',
  ],
  ['responses', { prompt: { id: 'pmpt_1' } }, 'stored_prompts', 'body.prompt'],
  [
    'responses',
    { input: [{}, { type: 'additional_tools', tools: [{ type: 'mcp' }] }] },
    'mcp',
    'body.input[1].tools[0]',
  ],
  [
    'responses',
    { tools: [{ type: 'namespace', tools: [{ type: 'web_search' }] }] },
    'web_search',
    'body.tools[0].tools[0]',
  ],
] as const)('%s with %j asks for %s', (format, request, feature, place) => {
  expect(findFeatures(fieldTables[format], request, {})).toEqual([{ feature, place }])
})

test('what the caller runs itself asks for nothing', () => {
  const own = [
    'function',
    'custom',
    'local_shell',
    'shell',
    'apply_patch',
    'bash_20250124',
    'web_searcher',
  ]
  const request = { tools: own.map((type) => ({ type })), mcp_servers: [], container: null }
  for (const format of formats) expect(findFeatures(fieldTables[format], request, {})).toEqual([])
  expect(findFeatures(fieldTables.chat_completions, { modalities: ['text'] }, {})).toEqual([])
})

test.each(formats)(
  '%s: tools of unknown types follow the upstream, and a prefix hides nothing',
  (format) => {
    const tools = [{ type: 'function' }, { name: 'own' }, { type: 'teleport' }]
    const remove = (options: typeof open) =>
      removeFields(fieldTables[format], { request: { tools }, headers: {} }, options)
    expect(remove(open)).toMatchObject({ request: { tools }, removed: [] })
    expect(remove(strict)).toMatchObject({
      request: { tools: tools.slice(0, 2) },
      removed: ['tools: teleport'],
    })
    const hidden = { tools: [{ type: 'vendor:web_search' }] }
    expect(findFeatures(fieldTables[format], hidden, {})).toMatchObject([{ feature: 'web_search' }])
  },
)

test('compaction reads input that the gateway does not count', () => {
  expect(
    hasUnseenInput({ context_management: { edits: [{ type: 'compact_20260112' }] } }, []),
  ).toBe(true)
  expect(hasUnseenInput({ context_management: [{ type: 'compaction' }] }, [])).toBe(true)
  const clearing = { context_management: { edits: [{ type: 'clear_thinking_20251015' }] } }
  expect(hasUnseenInput(clearing, [])).toBe(false)
  expect(hasUnseenInput({}, [{ feature: 'web_search', place: '' }])).toBe(true)
})

test('betas are judged one by one', () => {
  const betas = 'claude-code-20250219, context-1m-2025-08-07,fast-mode-2026-02-01,new-2031-01-01'
  const headers = { 'anthropic-beta': betas, 'anthropic-version': '2023-06-01' }
  expect(findFeatures(fieldTables.messages, {}, headers)).toEqual([
    { feature: 'long_context', place: 'anthropic-beta: context-1m-2025-08-07' },
  ])
  const remove = (options: typeof open) =>
    removeFields(fieldTables.messages, { request: {}, headers }, options)
  expect(remove(open)).toMatchObject({
    headers: {
      'anthropic-version': '2023-06-01',
      'anthropic-beta': 'claude-code-20250219,context-1m-2025-08-07,new-2031-01-01',
    },
    removed: ['anthropic-beta: fast-mode-2026-02-01'],
  })
  expect(remove(strict).headers['anthropic-beta']).toBe(
    'claude-code-20250219,context-1m-2025-08-07',
  )
})

test('without a price for an hour, cache markers stay and lose their ttl, however deep', () => {
  const marked = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } })
  const requestWith = (ttl?: string) => ({
    system: [{ type: 'text', text: 'a', ...marked(ttl) }],
    tools: [{ name: 'f', ...marked(ttl) }],
    messages: [
      { role: 'user', content: 'text' },
      {
        role: 'user',
        content: [
          { type: 'tool_result', content: [{ type: 'text', text: 'b', ...marked(ttl) }] },
          { type: 'document', source: { type: 'content', content: [{ ...marked(ttl) }] } },
          { type: 'text', text: 'c', ...marked('5m') },
        ],
      },
    ],
    ...marked(ttl),
  })
  const sent = { request: requestWith('1h'), headers: {} }
  for (const format of ['messages', 'chat_completions'] as const) {
    const { request, removed } = removeFields(fieldTables[format], sent, {
      ...open,
      keepsCacheTtl: false,
    })
    expect([request, removed]).toEqual([requestWith(), ['cache_control.ttl']])
  }
  const kept = removeFields(fieldTables.messages, sent, { ...strict, keepsCacheTtl: true })
  expect([kept.request, kept.removed]).toEqual([requestWith('1h'), []])
})

test('a call reserves the searches that it may make, ten where it names none, at most a hundred', () => {
  const tool = { type: 'web_search_20250305' }
  expect(mostWebSearches({ tools: [tool] })).toBe(10)
  expect(mostWebSearches({ tools: [{ ...tool, max_uses: 3 }] })).toBe(3)
  expect(mostWebSearches({ tools: [tool], max_tool_calls: 7 })).toBe(7)
  expect(mostWebSearches({ tools: [{ ...tool, max_uses: 1e9 }] })).toBe(100)
  expect(mostWebSearches({ tools: [{ ...tool, max_uses: 0.5 }] })).toBe(1)
  expect([leastWebSearches({ web_search_options: {} }), leastWebSearches({})]).toEqual([1, 0])
})
