import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { beforeEach, describe, expect, test } from 'vitest'

import { clearRecords, recordedBy } from './support/codex/upstream.ts'
import { openAccount } from './support/credits/money.ts'
import { beginRaw, bodyOf, type Format, formats, pathOf } from './support/streams/call.ts'
import { passUnknown } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// What changes the price of a call, or configures the server, does not pass unpriced: neither to an upstream of
// the caller's format nor translated, also where unknown members pass.

const models = ['claude-scripted', 'responses-scripted', 'chat-scripted'] as const
const searchPrice = '0.01'

/** Every upstream passes unknown members. The model `open` allows what costs more, and has prices for it. */
function catalogue(urls: UpstreamUrls) {
  const { upstreams, models: usual } = stackModels(urls)
  const [first] = usual
  const prices = { input: '3', output: '15', cache_write: '3.75', cache_write_1h: '6' }
  const open = {
    ...first,
    id: 'open',
    context_tokens: 200_000,
    prices: { ...prices, per_call: { web_search: searchPrice } },
    allows: ['mcp', 'containers', 'long_context'],
  }
  return { upstreams: passUnknown(upstreams), models: [...usual, open] }
}

const stack = useStack({ models: catalogue, paidUsd: '1000' })
const upstreamUrl = () => stack().description.upstream_url
beforeEach(() => clearRecords(upstreamUrl()))

type Asking = {
  model: string
  body?: object
  headers?: Record<string, string>
  credential?: string
}

async function ask(format: Format, { model, body, headers, credential }: Asking) {
  const { base_url: baseUrl, project_key } = stack().description
  const options = { format, model, isStreamed: false, script: { text: 'Done.' } }
  const { answer } = beginRaw(
    { baseUrl, credential: credential ?? project_key },
    {
      path: pathOf[format],
      payload: JSON.stringify({ ...bodyOf(options), ...body }),
      ...(headers && { headers }),
    },
  )
  const { status, text, headers: sent } = await answer
  return { status, text, json: JSON.parse(text) as Record<string, unknown>, headers: sent }
}

const escapes = {
  n_predict: 99_999,
  max_new_tokens: 99_999,
  min_tokens: 5000,
  best_of: 8,
  extra_body: { max_tokens: 100_000 },
  models: ['the-dearest'],
  route: 'fallback',
  fallbacks: ['the-dearest'],
  preset: 'dear',
  priority: -100,
  chat_template: '{{ 7*7 }}',
  custom_logit_processor: 'gASV',
  lora_path: 'x',
  id_slot: 0,
  prompt_logprobs: 20,
  guided_regex: '(a+)+$',
  n_cmpl: 8,
  service_tier: 'priority',
  speed: 'fast',
  inference_geo: 'us',
  plugins: [{ id: 'web' }],
  provider: { order: ['dear'] },
  prediction: { type: 'content', content: 'x' },
}

const nested = { chat_template_kwargs: { chat_template: '{{ 7*7 }}', enable_thinking: false } }

describe.each(formats)('a caller of %s', (format) => {
  test.each(models)('reaches none of the fields of servers at %s', async (model) => {
    const answer = await ask(format, {
      model,
      body: { ...escapes, ...nested, not_yet_invented: 1 },
    })
    expect(answer.status, answer.text).toBe(200)
    const [record] = await recordedBy(upstreamUrl())
    expect(Object.keys(record?.body ?? {})).not.toEqual([])
    for (const name of Object.keys(escapes)) expect(record?.body).not.toHaveProperty(name)
    expect(JSON.stringify(record?.body)).not.toContain('7*7')
    const isSame = 'not_yet_invented' in (record?.body ?? {})
    expect(isSame).toBe(
      model.startsWith({ messages: 'claude', responses: 'resp', chat: 'chat' }[format]),
    )
    const removed = isSame ? Object.keys(escapes).slice(0, 20).join(', ') : undefined
    expect(answer.headers['x-gatehouse-removed']).toBe(removed)
  })
})

test.each([
  ['messages', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, 'web_search'],
  ['messages', { mcp_servers: [{ type: 'url', url: 'https://x.example', name: 'x' }] }, 'mcp'],
  ['messages', { container: 'container_of_somebody_else' }, 'containers'],
  ['chat', { web_search_options: { search_context_size: 'high' } }, 'web_search'],
  [
    'chat',
    { modalities: ['text', 'audio'], audio: { voice: 'alloy', format: 'wav' } },
    'audio_output',
  ],
  ['responses', { tools: [{ type: 'image_generation', quality: 'high' }] }, 'image_generation'],
  [
    'responses',
    { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }] },
    'code_execution',
  ],
  ['responses', { tools: [{ type: 'file_search', vector_store_ids: ['vs_1'] }] }, 'file_search'],
  ['responses', { prompt: { id: 'pmpt_of_the_operator' } }, 'stored_prompts'],
] as const)(
  '400 for %s with %j, at every upstream, and the message says how to allow it',
  async (format, body, feature) => {
    for (const model of models) {
      const { status, json, text } = await ask(format, { model, body })
      expect([status, text]).toEqual([400, expect.stringContaining('unsupported_parameter')])
      expect(JSON.stringify(json)).toContain(`add \\"${feature}\\" to 'allows' of this model`)
    }
    expect(await recordedBy(upstreamUrl())).toEqual([])
  },
)

test('400 for a beta that changes the price; one that only makes it faster is dropped', async () => {
  const headers = { 'anthropic-beta': 'context-1m-2025-08-07,fast-mode-2026-02-01' }
  const refused = await ask('messages', { model: 'claude-scripted', headers })
  expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('long_context')])
  const allowed = await ask('messages', { model: 'open', headers })
  expect([allowed.status, allowed.headers['x-gatehouse-removed']]).toEqual([
    200,
    'anthropic-beta: fast-mode-2026-02-01',
  ])
  const [record] = await recordedBy(upstreamUrl())
  expect(record?.headers['anthropic-beta']).toBe('context-1m-2025-08-07')
})

test('a cache marker of an hour needs a price, and is charged by it', async () => {
  const cache_control = { type: 'ephemeral', ttl: '1h' }
  const body = { system: [{ type: 'text', text: 'Be brief.', cache_control }] }
  const cheap = await ask('messages', { model: 'claude-scripted', body })
  expect(cheap.headers['x-gatehouse-removed']).toBe('cache_control.ttl')
  await ask('messages', { model: 'open', body })
  const [first, second] = await recordedBy(upstreamUrl())
  expect(first?.body['system']).toEqual([
    { type: 'text', text: 'Be brief.', cache_control: { type: 'ephemeral' } },
  ])
  expect(second?.body['system']).toEqual(body.system)
})

describe('input of unknown size', () => {
  const url = 'https://example.com/600-pages.pdf'
  const data = Buffer.from('%PDF-1.7').toString('base64')
  const document = (source: object) => ({
    messages: [{ role: 'user', content: [{ type: 'document', source }] }],
  })
  test.each([
    ['messages', document({ type: 'url', url })],
    ['messages', document({ type: 'file', file_id: 'file_1' })],
    ['messages', document({ type: 'base64', media_type: 'application/pdf', data })],
    ['chat', { messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: 'f' } }] }] }],
    ['responses', { input: [{ role: 'user', content: [{ type: 'input_file', file_url: url }] }] }],
  ] as const)('402 for %s with %j: the hold covers the whole context', async (format, body) => {
    // 200,000 tokens of context cost 1.20 USD, if all of them are cached for an hour.
    const { target } = await openAccount(stack(), 'Poor', 1_190_000)
    const { credential } = target
    const { status, text } = await ask(format, { model: 'open', body, credential })
    expect([status, text]).toEqual([402, expect.stringMatching(/up to 12\d{5} credits/)])
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})

describe('a call without a key', () => {
  const free = (body: object) => {
    const { base_url: baseUrl } = stack().description
    return fetch(`${baseUrl}/v1/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-free-tier': 'true' },
      body: JSON.stringify({ model: 'open', max_tokens: 5, ...body }),
    })
  }
  test.each([
    { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
    { mcp_servers: [{ type: 'url', url: 'https://x.example', name: 'x' }] },
    {
      messages: [
        {
          role: 'user',
          content: [{ type: 'image', source: { type: 'url', url: 'https://a.example/b.png' } }],
        },
      ],
    },
  ])('400 with %j, although the model allows it', async (body) => {
    const hi = { messages: [{ role: 'user', content: 'Hi' }] }
    const response = await free({ ...hi, ...body })
    expect([response.status, await response.text()]).toEqual([
      400,
      expect.stringContaining('unsupported_parameter'),
    ])
    expect(await recordedBy(upstreamUrl())).toEqual([])
  })
})
