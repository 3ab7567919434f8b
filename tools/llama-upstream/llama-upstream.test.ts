import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { startLlamaUpstream, whyNoLlama } from './start.ts'
import { splitAtStop } from './stop-sequences.ts'

const reason = whyNoLlama()

test('a missing model file is an error that names the file and the variable', async () => {
  expect(whyNoLlama('/nowhere/model.gguf')).toMatch(
    /^The model file \/nowhere\/model.gguf does not /,
  )
  await expect(startLlamaUpstream({ modelPath: '/nowhere/model.gguf' })).rejects.toThrow(
    'Set LLAMA_MODEL_PATH to',
  )
})

test.each([
  ['one two', [], 7, false],
  ['one two', ['two'], 4, true],
  ['one two', ['two', 'ne'], 1, true],
  ['one tw', ['two'], 4, false],
  ['one t', ['two', 'e txt'], 2, false],
  ['half \uFFFD', [], 5, false],
] as const)('of %j with the stops %j, %d characters may be sent', (text, stops, end, isStopped) => {
  expect(splitAtStop(text, stops, false)).toEqual({ end, isStopped })
  if (!isStopped) expect(splitAtStop(text, stops, true).end).toBe(text.length)
})

describe.skipIf(reason !== undefined)(
  `the test model${reason ? ` (skipped: ${reason})` : ''}`,
  () => {
    let llama: Awaited<ReturnType<typeof startLlamaUpstream>>
    beforeAll(async () => void (llama = await startLlamaUpstream()), 30_000)
    afterAll(() => llama?.stop())

    const read = async (response: Response) => JSON.parse(await response.text())
    const post = (path: string, body: object, signal?: AbortSignal) =>
      fetch(`${llama.url}${path}`, {
        method: 'POST',
        body: JSON.stringify(body),
        ...(signal && { signal }),
      })
    const messages = [{ role: 'user', content: 'Once upon a time' }]
    const complete = async (further: object = {}) =>
      read(await post('/v1/chat/completions', { messages, max_tokens: 40, ...further }))
    const eventsOf = async (further: object) => {
      const body = { messages, max_tokens: 40, stream: true, ...further }
      const text = await (await post('/v1/chat/completions', body)).text()
      const frames = text
        .split('\n\n')
        .filter(Boolean)
        .map((frame) => frame.replace('data: ', ''))
      expect(frames.at(-1)).toBe('[DONE]')
      return frames.slice(0, -1).map((frame) => JSON.parse(frame))
    }

    test('a plain and a streamed answer have the same text and usage', async () => {
      const plain = await complete()
      const { message, finish_reason } = plain.choices[0]
      expect(message.content).toMatch(/^, there was a little/)
      expect(finish_reason).toBe('length')
      expect(plain.usage).toEqual({ prompt_tokens: 5, completion_tokens: 40, total_tokens: 45 })
      const chunks = await eventsOf({ stream_options: { include_usage: true } })
      const streamed = chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')
      expect(streamed).toBe(message.content)
      expect(chunks.length).toBeGreaterThan(20)
      expect(chunks.at(-1)).toMatchObject({ choices: [], usage: plain.usage })
    })

    test('without include_usage a stream has no usage, and ends with a finish reason', async () => {
      const chunks = await eventsOf({ max_tokens: 3 })
      expect(JSON.stringify(chunks)).not.toContain('usage')
      expect(chunks.at(-1).choices[0]).toMatchObject({ delta: {}, finish_reason: 'length' })
    })

    test('the answer ends before a stop sequence', async () => {
      const { choices, usage } = await complete({ stop: 'girl' })
      expect(choices[0]).toMatchObject({
        finish_reason: 'stop',
        message: { content: ', there was a little ' },
      })
      expect(usage.completion_tokens).toBeLessThan(10)
    })

    test('the prompt tokens of the usage are those of the template and the tokenizer', async () => {
      const long = [{ role: 'user', content: 'The dog was very happy. '.repeat(200) }]
      const { prompt } = await read(await post('/apply-template', { messages: long }))
      const tokenized = { content: prompt, add_special: true, parse_special: true }
      const { tokens } = await read(await post('/tokenize', tokenized))
      const { usage } = await complete({ messages: long, max_tokens: 1 })
      expect(usage.prompt_tokens).toBe(tokens.length)
      expect(tokens.length).toBeGreaterThan(300)
      expect(tokens.length).toBeLessThanOrEqual(384)
      const pieces = await read(await post('/tokenize', { content: 'a dog', with_pieces: true }))
      expect(pieces.tokens[0]).toEqual({ id: expect.any(Number), piece: expect.any(String) })
    })

    test('a client that disconnects frees the model at once', async () => {
      const elapsedMs = async (max_tokens: number) => {
        const startedAt = performance.now()
        await complete({ max_tokens })
        return performance.now() - startedAt
      }
      const hundredTokensMs = await elapsedMs(100)
      const disconnected = new AbortController()
      const calls = Array.from({ length: 8 }, async () => {
        const body = { messages, stream: true, temperature: 1.5, max_tokens: 500 }
        const response = await post('/v1/chat/completions', body, disconnected.signal)
        return response.text()
      })
      const settled = Promise.allSettled(calls)
      await new Promise((resolve) => setTimeout(resolve, 100))
      disconnected.abort()
      await settled
      // The streams had up to 4000 tokens to go.
      expect(await elapsedMs(1)).toBeLessThan(hundredTokensMs)
    })

    test('requests beyond the length of the queue are refused with 503', async () => {
      const calls = Array.from({ length: 80 }, () =>
        post('/v1/chat/completions', { messages, max_tokens: 2 }),
      )
      const statuses = (await Promise.all(calls)).map(({ status }) => status)
      expect(new Set(statuses)).toEqual(new Set([200, 503]))
    }, 20_000)

    test('the list names the model, and invalid requests are refused', async () => {
      const { data } = await read(await fetch(`${llama.url}/v1/models`))
      expect(data).toMatchObject([{ id: 'stories260K', object: 'model', meta: { n_vocab: 512 } }])
      expect((await post('/v1/chat/completions', { messages: [] })).status).toBe(400)
      expect((await post('/v1/nothing', {})).status).toBe(404)
    })
  },
)
