import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'

import type { Turn } from '#formats/turn.ts'
import type { PostToUpstream } from '#inference/upstreams/post-upstream.ts'
import { ApiError } from '#platform/api-error.ts'
import { Cancellation } from '#platform/calls/cancellation.ts'

import { toCountRequest } from './count-request.ts'
import { countInput, keepsAllThinking, readCountTokens } from './count-tokens.ts'
import { type CountAsker, createTurnCounter } from './count-turn.ts'
import { createUpstreamCounter } from './upstream-counter.ts'
import { toViolations } from './violations.ts'

const messages = [{ role: 'user', content: 'Hello.' }]
const good = { model: 'm', messages }

function refusalOf(work: () => unknown): ApiError {
  try {
    work()
  } catch (error) {
    if (error instanceof ApiError) return error
    throw error
  }
  throw new Error('It was accepted.')
}

const violationsOf = (body: unknown) => refusalOf(() => readCountTokens(body)).violations

test('what may be left out is filled in, so that upstreams and counters get an ordinary request', () => {
  const lenient = {
    model: 'm',
    messages: [{ content: 'Hello.' }, { role: 'assistant', content: 'Hi.' }],
    tool_choice: { name: 'f' },
    thinking: { budget_tokens: 2048 },
  }
  expect(readCountTokens(lenient)).toEqual({
    model: 'm',
    messages: [
      { role: 'user', content: 'Hello.' },
      { role: 'assistant', content: 'Hi.' },
    ],
    tool_choice: { type: 'tool', name: 'f' },
    thinking: { type: 'enabled', budget_tokens: 2048 },
  })
  const exact = { ...good, tool_choice: { type: 'auto' }, thinking: { type: 'adaptive' } }
  expect(readCountTokens(exact)).toEqual(exact)
})

describe('an invalid body', () => {
  test('is a 422 that lists every violation in the form that clients know', () => {
    const { status, violations } = refusalOf(() => readCountTokens({ model: '', messages: [] }))
    expect(status).toBe(422)
    expect(violations).toEqual([
      {
        loc: ['body', 'model'],
        msg: 'String should have at least 1 character',
        type: 'string_too_short',
        input: '',
        ctx: { min_length: 1 },
      },
      {
        loc: ['body', 'messages'],
        msg: 'List should have at least 1 item after validation, not 0',
        type: 'too_short',
        input: [],
        ctx: { field_type: 'List', min_length: 1, actual_length: 0 },
      },
    ])
  })

  test('a missing member has its parent as input, and no ctx', () => {
    expect(violationsOf({ model: 'm', messages: [{ role: 'user' }] })).toEqual([
      {
        loc: ['body', 'messages', 0, 'content'],
        msg: 'Field required',
        type: 'missing',
        input: { role: 'user' },
      },
    ])
  })

  test.each([
    [null, [], 'dict_type'],
    [[], [], 'dict_type'],
    ['x', [], 'dict_type'],
    [{ messages }, ['model'], 'missing'],
    [{ model: 5, messages }, ['model'], 'string_type'],
    [{ model: 'x'.repeat(1001), messages }, ['model'], 'string_too_long'],
    [{ model: 'm', messages: 'x' }, ['messages'], 'list_type'],
    [{ model: 'm', messages: ['x'] }, ['messages', 0], 'dict_type'],
    [
      { model: 'm', messages: [{ role: 'user', content: 5 }] },
      ['messages', 0, 'content'],
      'string_type',
    ],
    [
      { model: 'm', messages: [{ role: 'x', content: 'x' }] },
      ['messages', 0, 'role'],
      'literal_error',
    ],
    [
      { ...good, thinking: { type: 'enabled', budget_tokens: '5' } },
      ['thinking', 'budget_tokens'],
      'int_parsing',
    ],
    [
      { ...good, thinking: { type: 'enabled', budget_tokens: 1.5 } },
      ['thinking', 'budget_tokens'],
      'int_from_float',
    ],
    [
      { ...good, thinking: { type: 'enabled', budget_tokens: [] } },
      ['thinking', 'budget_tokens'],
      'int_type',
    ],
    [
      { ...good, thinking: { type: 'enabled', budget_tokens: 0 } },
      ['thinking', 'budget_tokens'],
      'greater_than_equal',
    ],
    [{ ...good, tool_choice: {} }, ['tool_choice', 'type'], 'missing'],
    [{ ...good, thinking: {} }, ['thinking', 'type'], 'missing'],
    [{ ...good, tool_choice: { type: 'x' } }, ['tool_choice', 'type'], 'literal_error'],
    [
      { ...good, tool_choice: { type: 'any', disable_parallel_tool_use: 1 } },
      ['tool_choice', 'disable_parallel_tool_use'],
      'bool_type',
    ],
    [{ ...good, tools: {} }, ['tools'], 'list_type'],
    [{ ...good, tools: [{ name: 'x' }] }, ['tools', 0, 'input_schema'], 'missing'],
    [{ ...good, system: [{ type: 'text' }] }, ['system', 0, 'text'], 'missing'],
    [{ ...good, context_management: { edits: 'x' } }, ['context_management', 'edits'], 'list_type'],
    [
      { model: 'm', messages: [{ role: 'user', content: [{ type: 'x' }] }] },
      ['messages', 0, 'content', 0, 'type'],
      'union_tag_invalid',
    ],
  ] as const)('%j: %j %s', (body, path, type) => {
    expect(violationsOf(body)).toEqual([expect.objectContaining({ loc: ['body', ...path], type })])
  })

  test('each unknown member of a closed object is a violation of its own', () => {
    const issue = { code: 'unrecognized_keys', keys: ['a', 'b'], path: ['x'], message: '' } as const
    expect(
      toViolations([{ ...issue, keys: [...issue.keys], path: ['x'] }], { x: { a: 1, b: 2 } }),
    ).toEqual([
      {
        loc: ['body', 'x', 'a'],
        msg: 'Extra inputs are not permitted',
        type: 'extra_forbidden',
        input: 1,
      },
      {
        loc: ['body', 'x', 'b'],
        msg: 'Extra inputs are not permitted',
        type: 'extra_forbidden',
        input: 2,
      },
    ])
  })

  test('is reported briefly, however large it is', () => {
    const long = 'x'.repeat(100_000)
    const bodies = [
      { model: [long], messages: { [long]: long } },
      { model: 'm', messages: Array.from({ length: 50_000 }, () => ({ role: long })) },
      { model: Array.from({ length: 50_000 }, () => 1), messages: [[[[long]]]] },
    ]
    for (const body of bodies) {
      const violations = violationsOf(body) ?? []
      expect(violations.length).toBeGreaterThan(0)
      expect(violations.length).toBeLessThanOrEqual(20)
      for (const { input } of violations) expect(JSON.stringify(input).length).toBeLessThan(210)
    }
  })

  test('any value is accepted, or refused with violations', () => {
    fc.assert(
      fc.property(fc.anything(), fc.anything(), fc.anything(), (model, content, tools) => {
        for (const body of [model, { model, messages: [{ role: 'user', content }], tools }]) {
          try {
            readCountTokens(body)
          } catch (error) {
            expect(error).toBeInstanceOf(ApiError)
            expect((error as ApiError).violations?.length).toBeGreaterThan(0)
          }
        }
      }),
    )
  })
})

describe('context edits', () => {
  const keeping = (...edits: { type: string; keep?: unknown }[]) =>
    keepsAllThinking(readCountTokens({ ...good, context_management: { edits } }))

  test('keep all thinking only with keep: all', () => {
    expect(keeping({ type: 'clear_thinking_20251015', keep: 'all' })).toBe(true)
    expect(keeping({ type: 'clear_thinking_20251015' })).toBe(false)
    expect(keeping()).toBe(false)
    expect(keepsAllThinking(readCountTokens(good))).toBe(false)
    expect(keepsAllThinking(readCountTokens({ ...good, context_management: null }))).toBe(false)
  })

  test.each([
    [{ type: 'clear_tool_uses_20250919' }, 'type'],
    [{ type: 'clear_thinking_20251015', keep: 'none' }, 'keep'],
    [{ type: 'clear_thinking_20251015', keep: null }, 'keep'],
    [{ type: 'clear_thinking_20251015', keep: { type: 'thinking_turns', value: 1 } }, 'keep'],
  ])('400 for %j', (edit, member) => {
    const all = { type: 'clear_thinking_20251015', keep: 'all' }
    const error = refusalOf(() => keeping(all, edit))
    expect(error).toMatchObject({
      status: 400,
      code: 'unsupported_context_edit',
      param: `body.context_management.edits[1].${member}`,
    })
  })
})

describe('the request for an upstream', () => {
  const thinking = { type: 'thinking', thinking: 'Hm.', signature: 's' }
  const redacted = { type: 'redacted_thinking', data: 'x' }
  const text = { type: 'text', text: 'Hello.' }
  const user = { role: 'user', content: 'Hello.' }
  const answer = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'x' }] }
  const assistant = (...content: object[]) => ({ role: 'assistant', content })
  const conversation = [
    user,
    assistant(thinking, redacted, text),
    user,
    assistant(redacted),
    user,
    assistant(thinking, text),
    answer,
    assistant(redacted, text),
    user,
  ]
  const request = {
    model: 'ours',
    messages: conversation,
    system: 'Be brief.',
    tools: [],
    max_tokens: 5,
    stream: true,
    tool_choice: null,
    thinking: { type: 'adaptive' },
    metadata: {},
    context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
  }

  test('has the counted members, the model name of the upstream, and no context edits', () => {
    expect(toCountRequest(request, 'theirs', true)).toEqual({
      model: 'theirs',
      messages: conversation,
      system: 'Be brief.',
      tools: [],
      thinking: { type: 'adaptive' },
    })
  })

  test('without keep: all has the thinking of the last turn only', () => {
    expect(toCountRequest(request, 'theirs', false)['messages']).toEqual([
      user,
      assistant(text),
      user,
      user,
      assistant(thinking, text),
      answer,
      assistant(redacted, text),
      user,
    ])
    expect(request.messages).toBe(conversation)
    expect(conversation[1]).toEqual(assistant(thinking, redacted, text))
  })
})

describe('a count of input', () => {
  const turn: Turn = {
    system: [],
    tools: [],
    toolChoice: null,
    canCallToolsInParallel: null,
    topK: null,
    maxOutputTokens: null,
    temperature: null,
    topP: null,
    presencePenalty: null,
    seed: null,
    frequencyPenalty: null,
    stopSequences: [],
    reasoning: null,
    user: null,
    other: [],
    outputFormat: null,
    messages: [
      {
        role: 'assistant',
        parts: [
          { type: 'text', text: 'Hello.' },
          { type: 'reasoning', text: 'Hm.', opaque: null },
        ],
      },
      { role: 'user', parts: [{ type: 'text', text: 'Hello.' }] },
      { role: 'assistant', parts: [{ type: 'text', text: 'Yes?' }] },
    ],
  }
  const counter = createTurnCounter({
    countInThread: () => Promise.reject(new Error('Too long.')),
  })
  const counting = {
    turn,
    keepsAll: false,
    counter,
    toRequest: () => good,
    rule: {
      encoding: 'o200k',
      isOwnEncoding: true,
      factors: { ascii: 1, other: 1 },
      imageTokensMax: 3000,
    } as const,
  }
  const asker: CountAsker = {
    owner: 'org',
    cancellation: new Cancellation(),
    patience: 'long',
  }
  const asking = (post: PostToUpstream) =>
    createUpstreamCounter({ kind: 'anthropic', post, now: () => new Date(0) })

  test("is the upstream's if it has a counter", async () => {
    const upstream = asking(async () => ({ status: 200, json: { input_tokens: 5 } }))
    expect(await countInput({ ...counting, upstream }, asker)).toEqual({
      tokens: 5,
      origin: 'upstream',
    })
  })

  test.each([
    ['is slow', () => new Promise<never>(() => {})],
    ['fails', async () => ({ status: 500, json: {} })],
    ['answers without an object', async () => ({ status: 200, json: 'nonsense' })],
    ['reports a negative count', async () => ({ status: 200, json: { input_tokens: -5 } })],
  ])('is the local one after at most about 2 s if the upstream %s', async (_how, post) => {
    await counter.warm(['o200k', 'cl100k'])
    const local = await countInput({ ...counting, upstream: null }, asker)
    expect(local.origin).toBe('local-exact')
    const ratio = await waitingRatio('local count', 2000, async () => {
      expect(await countInput({ ...counting, upstream: asking(post) }, asker)).toEqual(local)
    })
    expect(ratio).toBeLessThan(1.3)
  })

  test('includes the reasoning of earlier turns only with keep: all', async () => {
    const last = await countInput({ ...counting, upstream: null }, asker)
    const all = await countInput({ ...counting, upstream: null, keepsAll: true }, asker)
    expect(all.tokens).toBeGreaterThan(last.tokens)
  })

  test('is refused above 8 MB before the upstream is called', async () => {
    let calls = 0
    const upstream = asking(async () => {
      calls++
      return { status: 200, json: { input_tokens: 5 } }
    })
    const huge = { ...turn, system: ['x'.repeat(8 * 1024 * 1024)] }
    await expect(countInput({ ...counting, turn: huge, upstream }, asker)).rejects.toMatchObject({
      code: 'request_too_large',
    })
    expect(calls).toBe(0)
  })
})
