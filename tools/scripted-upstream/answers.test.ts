import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { recordOf } from './json.ts'
import { ask, dialects, ways, type Dialect } from './raw-client.ts'
import { dataIn, eventsIn, understand } from './read-answer.ts'
import { startScriptedUpstream } from './server.ts'

let upstream: Awaited<ReturnType<typeof startScriptedUpstream>>
beforeAll(async () => void (upstream = await startScriptedUpstream()))
afterAll(() => upstream.stop())

const greeting = 'Hello from the scripted upstream.'
const schema = {
  type: 'object',
  properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 3 } },
  required: ['city', 'days'],
}
const fitting = { city: 'text', days: 3 }

function toolsFor(dialect: Dialect) {
  const names = ['first', 'second']
  if (dialect === 'messages') return names.map((name) => ({ name, input_schema: schema }))
  if (dialect === 'responses') {
    return names.map((name) => ({ type: 'function', name, parameters: schema }))
  }
  return names.map((name) => ({ type: 'function', function: { name, parameters: schema } }))
}

describe.each(ways)('$dialect, stream $stream', (way) => {
  const { dialect } = way
  const call = async (script: Parameters<typeof ask>[2], further: object = {}) => {
    const answer = await ask(upstream.url, way, script, further)
    expect(answer).toMatchObject({ status: 200, isBroken: false })
    return understand(answer, way)
  }

  test('without a script the answer is the greeting, with its usage', async () => {
    const { text, stop, usage } = await call('Twelve words')
    expect(text).toBe(greeting)
    expect(stop).toBe({ messages: 'end_turn', chat: 'stop', responses: 'completed' }[dialect])
    const counted = { input_tokens: 3, output_tokens: 5 }
    const chat = { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 }
    expect(usage).toMatchObject(dialect === 'chat' ? chat : counted)
  })

  test('text, thinking, redacted thinking and parallel calls arrive complete', async () => {
    const parsed = await call({
      thinking: 'Let me see: 🙂 äöü.',
      redacted: 'c2VhbGVk',
      text: '  Zwölf 🙂\njagen ',
      toolCalls: [
        { name: 'one', arguments: { a: [1, 'ü🙂'] } },
        { name: 'two', arguments: {} },
      ],
    })
    expect(parsed).toMatchObject({
      text: '  Zwölf 🙂\njagen ',
      thinking: 'Let me see: 🙂 äöü.',
      sealed: dialect === 'chat' ? '' : 'c2VhbGVk',
      calls: [
        { name: 'one', arguments: { a: [1, 'ü🙂'] } },
        { name: 'two', arguments: {} },
      ],
      stop: { messages: 'tool_use', chat: 'tool_calls', responses: 'completed' }[dialect],
    })
  })

  test('tokens gives as many words, and the usage reports them', async () => {
    const { text, usage } = await call({ tokens: 250, pieceTokens: 40 })
    expect(text.split(' ')).toHaveLength(250)
    const member = dialect === 'chat' ? 'completion_tokens' : 'output_tokens'
    expect(usage).toMatchObject({ [member]: 250 })
  })

  test("a refusal has the protocol's form", async () => {
    const { refusal, text, stop } = await call({ refusal: 'I will not.' })
    expect({ refusal, text }).toEqual({ refusal: 'I will not.', text: '' })
    expect(stop).toBe({ messages: 'refusal', chat: 'stop', responses: 'completed' }[dialect])
  })

  test.each([
    ['end', 'end_turn', 'stop', 'completed'],
    ['max_tokens', 'max_tokens', 'length', 'max_output_tokens'],
    ['stop_sequence', 'stop_sequence', 'stop', 'completed'],
    ['content_filter', 'refusal', 'content_filter', 'content_filter'],
  ] as const)('stop %s gives its stop reason', async (stop, messages, chat, responses) => {
    const parsed = await call({ text: 'a b', stop })
    expect(parsed.stop).toBe({ messages, chat, responses }[dialect])
  })

  test("the usage of the script is sent unchanged in the protocol's members", async () => {
    const usage = { input: 11, output: 22, cached: 3, cacheWrite: 4, reasoning: 5 }
    const parsed = await call({ usage })
    const messages = {
      input_tokens: 11,
      output_tokens: 22,
      cache_read_input_tokens: 3,
      cache_creation_input_tokens: 4,
      output_tokens_details: { thinking_tokens: 5 },
    }
    const chat = {
      prompt_tokens: 11,
      completion_tokens: 22,
      total_tokens: 33,
      prompt_tokens_details: { cached_tokens: 3, cache_write_tokens: 4 },
      completion_tokens_details: { reasoning_tokens: 5 },
    }
    const responses = {
      input_tokens: 11,
      output_tokens: 22,
      total_tokens: 33,
      input_tokens_details: { cached_tokens: 3, cache_write_tokens: 4 },
      output_tokens_details: { reasoning_tokens: 5 },
    }
    expect(parsed.usage).toMatchObject({ messages, chat, responses }[dialect])
  })

  test('noUsage leaves usage out everywhere', async () => {
    const { text, usage } = await call({ noUsage: true })
    expect(text).toBe(greeting)
    expect(usage ?? null).toBeNull()
    const { text: wire } = await ask(upstream.url, way, { noUsage: true })
    expect(wire).not.toContain('tokens":5')
  })

  test('a tool that must be called is called with arguments that fit its schema', async () => {
    const tools = toolsFor(dialect)
    const choice = dialect === 'messages' ? { type: 'any' } : 'required'
    const first = await call('Go', { tools, tool_choice: choice })
    expect(first).toMatchObject({ text: '', calls: [{ name: 'first', arguments: fitting }] })
    const named = {
      messages: { type: 'tool', name: 'second' },
      chat: { type: 'function', function: { name: 'second' } },
      responses: { type: 'function', name: 'second' },
    }
    const second = await call('Go', { tools, tool_choice: named[dialect] })
    expect(second.calls).toEqual([{ name: 'second', arguments: fitting }])
    expect((await call('Go', { tools })).calls).toEqual([])
  })

  test('a request with a JSON schema is answered with JSON that fits it', async () => {
    const format = { type: 'json_schema', schema }
    const further = {
      messages: { output_config: { format } },
      chat: { response_format: { type: 'json_schema', json_schema: { name: 'n', schema } } },
      responses: { text: { format: { ...format, name: 'n' } } },
    }
    const { text } = await call('Go', further[dialect])
    expect(JSON.parse(text)).toEqual(fitting)
  })

  test('a request for thinking gets it before the answer', async () => {
    const further = {
      messages: { thinking: { type: 'enabled', budget_tokens: 1024 } },
      chat: { reasoning_effort: 'high' },
      responses: { reasoning: { effort: 'low', summary: 'auto' } },
    }
    const { thinking, text, usage } = await call('Go', further[dialect])
    expect(text).toBe(greeting)
    // In chat, OpenAI reports the number of reasoning tokens but not their text.
    expect(thinking).toMatch(dialect === 'chat' ? /^$/ : /short answer/)
    expect(JSON.stringify(usage)).toMatch(/(reasoning|thinking)_tokens":1\d/)
  })

  test('the length limit and the stop sequences of the request cut the greeting', async () => {
    const length = { messages: 'max_tokens', chat: 'max_tokens', responses: 'max_output_tokens' }
    const cut = await call('Go', { [length[dialect]]: 2 })
    expect(cut).toMatchObject({ text: 'Hello from' })
    expect(cut.stop).toBe(dialect === 'chat' ? 'length' : length[dialect])
    if (dialect === 'responses') return
    const stops = dialect === 'chat' ? { stop: ['the', 'm '] } : { stop_sequences: ['the', 'm '] }
    expect((await call('Go', stops)).text).toBe('Hello fro')
  })

  test('echo returns the received request', async () => {
    const { text } = await call({ echo: true })
    const { path, body, headers } = JSON.parse(text)
    expect(path).toMatch(/^\/v1\//)
    expect(body).toMatchObject({ model: 'scripted-small', stream: way.stream })
    expect(recordOf(headers)['host']).toContain('127.0.0.1')
  })

  test('a script with an unknown member is refused, and the error names the member', async () => {
    const wrong = { txt: 'a' } as object
    const { status, text } = await ask(upstream.url, way, wrong)
    expect(status).toBe(400)
    expect(text).toContain('a member \\"txt\\" that does not exist')
  })
})

test('the type of every message event is its name, and blocks do not overlap', async () => {
  const way = { dialect: 'messages', stream: true } as const
  const script = { thinking: 'Hm.', text: 'a b', toolCalls: [{ name: 't', arguments: { a: 1 } }] }
  const events = eventsIn((await ask(upstream.url, way, script)).text)
  for (const { event, data } of events) expect(recordOf(data)['type']).toBe(event)
  const seen = events.map(({ event, data }) => {
    const { index, delta } = recordOf(data)
    const parts = [event, index, recordOf(delta)['type']].filter((part) => part !== undefined)
    return parts.map(String).join(' ')
  })
  expect(seen).toEqual([
    'message_start',
    'ping',
    'content_block_start 0',
    'content_block_delta 0 thinking_delta',
    'content_block_delta 0 signature_delta',
    'content_block_stop 0',
    'content_block_start 1',
    'content_block_delta 1 text_delta',
    'content_block_delta 1 text_delta',
    'content_block_stop 1',
    'content_block_start 2',
    ...Array.from({ length: 4 }, () => 'content_block_delta 2 input_json_delta'),
    'content_block_stop 2',
    'message_delta',
    'message_stop',
  ])
})

test("response events are numbered from 0 and are in the vendor's order", async () => {
  const way = { dialect: 'responses', stream: true } as const
  const script = { thinking: 'Hm.', text: 'a', toolCalls: [{ name: 't', arguments: {} }] }
  const events = dataIn((await ask(upstream.url, way, { ...script, argumentPieces: 1 })).text)
  expect(events.map((event) => event['sequence_number'])).toEqual([...events.keys()])
  expect(events.map((event) => String(event['type']).replace('response.', ''))).toEqual([
    'created',
    'in_progress',
    'output_item.added',
    'reasoning_summary_part.added',
    'reasoning_summary_text.delta',
    'reasoning_summary_text.done',
    'reasoning_summary_part.done',
    'output_item.done',
    'output_item.added',
    'content_part.added',
    'output_text.delta',
    'output_text.done',
    'content_part.done',
    'output_item.done',
    'output_item.added',
    'function_call_arguments.delta',
    'function_call_arguments.done',
    'output_item.done',
    'completed',
  ])
})

test('chat chunks share id and time, and usage comes last and only on request', async () => {
  const way = { dialect: 'chat', stream: true } as const
  const { text } = await ask(upstream.url, way, { text: 'a b' })
  expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  const chunks = dataIn(text).slice(0, -1)
  expect(new Set(chunks.map(({ id, created }) => `${String(id)}${String(created)}`)).size).toBe(1)
  expect(chunks.map(({ usage }) => usage === null)).toEqual([true, true, true, true, false])
  const withoutUsage = await ask(upstream.url, way, { text: 'a b' }, { stream_options: undefined })
  expect(withoutUsage.text).not.toContain('usage')
})

test.each(dialects)(
  '%s: argumentPieces and pieceTokens set the number of pieces',
  async (dialect) => {
    const script = { text: 'a b c d e', pieceTokens: 2, argumentPieces: 5 }
    const toolCalls = [{ name: 't', arguments: { long: 'enough for five' } }]
    const { text } = await ask(upstream.url, { dialect, stream: true }, { ...script, toolCalls })
    const marks = {
      messages: [/"text_delta"/g, /"partial_json":"[^"]/g],
      chat: [/"delta":{"content":"[^"]/g, /"function":{"arguments":"/g],
      responses: [
        /^event: response.output_text.delta/gm,
        /^event: response.function_call_arguments.delta/gm,
      ],
    }[dialect]
    expect(marks.map((mark) => text.match(mark)?.length)).toEqual([3, 5])
  },
)
