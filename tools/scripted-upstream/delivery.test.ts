import { connect } from 'node:net'

import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { recordOf } from './json.ts'
import { ask, bodyOf, dialects, send, scripted, ways } from './raw-client.ts'
import { dataIn, understand } from './read-answer.ts'
import { startScriptedUpstream } from './server.ts'

let upstream: Awaited<ReturnType<typeof startScriptedUpstream>>
beforeAll(async () => void (upstream = await startScriptedUpstream()))
afterAll(() => upstream.stop())

const text = 'Zwölf 🙂 Boxkämpfer jagen Viktor'
const state = async () => JSON.parse((await send(upstream.url, '/control/state')).text)
const stable = (wire: string) =>
  wire
    .replaceAll(/scripted\d+/g, 'scripted')
    .replaceAll(/"(created|created_at|completed_at)":\d+/g, '')
    .replaceAll(/"signature":"[^"]*"/g, '')

describe.each(ways)('$dialect, stream $stream', (way) => {
  const hear = (script: Parameters<typeof ask>[2]) => ask(upstream.url, way, script)

  test('headMs delays the head, firstMs the body after it', async () => {
    // A busy machine may read the head late once, but not every time.
    let share = 1
    for (let round = 0; round < 5 && share > 0.7; round++) {
      const { headMs, firstMs } = await hear({ headMs: 60, firstMs: 80 })
      expect(headMs).toBeGreaterThanOrEqual(59)
      expect(firstMs).toBeGreaterThanOrEqual(138)
      share = Math.min(share, headMs / firstMs)
    }
    expect(share).toBeLessThanOrEqual(0.7)
  })

  test('paceMs lies between the pieces, and a plain answer takes as long', async () => {
    const heard = await hear({ text, paceMs: 30 })
    expect(heard.totalMs).toBeGreaterThanOrEqual(4 * 29)
    if (way.stream) expect(heard.chunks.length).toBeGreaterThanOrEqual(5)
    else expect(heard.headMs).toBeGreaterThanOrEqual(4 * 29)
  })

  test('stallAfter waits in the middle and then goes on', async () => {
    const heard = await hear({ text, stallAfter: { pieces: 2, ms: 100 } })
    // What was sent at once may be read late on a busy machine.
    expect(heard.totalMs).toBeGreaterThanOrEqual(98)
    expect(heard.totalMs - heard.firstMs).toBeGreaterThanOrEqual(20)
    expect(understand(heard, way).text).toBe(text)
  })

  test('closeAfter breaks the connection with the first pieces delivered', async () => {
    const heard = await hear({ text, closeAfter: { pieces: 2 } })
    expect(heard).toMatchObject({ status: 200, isBroken: true })
    if (way.stream) expect(piecesIn(heard.text)).toBe(2)
    else expect(heard.text).toMatch(/^{"id":/)
    expect(() => JSON.parse(heard.text)).toThrow(SyntaxError)
  })

  test('closeAfter is not taken for a reader who hung up', async () => {
    await send(upstream.url, '/control/reset', {})
    await hear({ closeAfter: { pieces: 1 } })
    await expect.poll(async () => (await state()).open).toBe(0)
    expect((await state()).hungUp).toEqual([])
  })

  test('malformedAfter sends what is not JSON', async () => {
    const heard = await hear({ text, malformedAfter: { pieces: 1 } })
    expect(heard).toMatchObject({ status: 200, isBroken: false })
    const read = () => (way.stream ? dataIn(heard.text) : JSON.parse(heard.text))
    expect(read).toThrow(SyntaxError)
    if (way.stream) expect(piecesIn(heard.text)).toBe(5)
  })

  test('error comes before the head, in the words of the protocol', async () => {
    const error = { status: 429, type: 'odd_error', message: 'Too much.', retryAfter: 7 }
    const { status, headers, text: body } = await hear({ error })
    expect(status).toBe(429)
    expect(headers).toMatchObject({ 'retry-after': '7', 'content-type': 'application/json' })
    expect(JSON.parse(body).error).toMatchObject({ type: 'odd_error', message: 'Too much.' })
  })

  test('hugeFrameBytes adds one long piece', async () => {
    const heard = await hear({ text: 'a', hugeFrameBytes: 300_000 })
    expect(understand(heard, way).text).toBe(`a${'x'.repeat(300_000)}`)
    const longest = Math.max(...heard.text.split('\n').map((line) => line.length))
    expect(longest).toBeGreaterThan(300_000)
  })

  test('splitBytes: any size gives the same bytes, and no part is longer', async () => {
    const toolCalls = [{ name: 't', arguments: { ü: '🙂' } }]
    const script = { thinking: 'Hm ä.', text, toolCalls, usage: { input: 1 } }
    const whole = stable((await hear(script)).text)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 4000 }), async (splitBytes) => {
        const { chunks, text: wire } = await hear({ ...script, splitBytes })
        expect(stable(wire)).toBe(whole)
        expect(Math.max(...chunks.map((chunk) => chunk.length))).toBeLessThanOrEqual(splitBytes)
      }),
      { numRuns: 8, examples: [[1], [3]] },
    )
  })
})

const piecesIn = (wire: string) =>
  wire.match(/"text_delta"|"delta":{"content":"[^"]|output_text.delta","/g)?.length ?? 0

describe.each(dialects)('%s as a stream', (dialect) => {
  const way = { dialect, stream: true }
  const hear = (script: Parameters<typeof ask>[2]) => ask(upstream.url, way, script)

  test('errorAfter is the error event of the protocol, and the end', async () => {
    const { text: wire, isBroken } = await hear({
      text,
      paceMs: 1,
      errorAfter: { pieces: 3, type: 'overloaded_error', message: 'Enough.' },
    })
    expect(isBroken).toBe(false)
    expect(piecesIn(wire)).toBe(3)
    const events = dataIn(wire)
    const expected = {
      messages: { type: 'error', error: { type: 'overloaded_error', message: 'Enough.' } },
      chat: { error: { type: 'overloaded_error', message: 'Enough.', param: null, code: null } },
      responses: {
        type: 'error',
        code: 'overloaded_error',
        message: 'Enough.',
        param: null,
        sequence_number: events.length - 1,
      },
    }
    expect(events.at(-1)).toEqual(expected[dialect])
  })

  test('a fault beyond the last piece comes after it and before the end', async () => {
    const { text: wire, isBroken } = await hear({ text, closeAfter: { pieces: 99 } })
    expect(isBroken).toBe(true)
    expect(piecesIn(wire)).toBe(5)
    expect(wire).not.toMatch(/message_stop|\[DONE\]|response.completed/)
  })

  test('a fault after no piece leaves the opening events only', async () => {
    const { text: wire } = await hear({ text, closeAfter: { pieces: 0 } })
    expect(piecesIn(wire)).toBe(0)
    expect(wire).toMatch(/message_start|"role":"assistant"|response.created/)
  })

  test('coalesce brings everything in one chunk', async () => {
    const { chunks } = await hear({ text, coalesce: true })
    expect(chunks).toHaveLength(1)
    expect((await hear({ text })).chunks.length).toBeGreaterThan(5)
  })

  test('crlf ends every line with two characters', async () => {
    const heard = await hear({ text, crlf: true })
    expect(heard.text.replaceAll('\r\n', '')).not.toContain('\n')
    expect(heard.text.endsWith('\r\n\r\n')).toBe(true)
    expect(understand(heard, way).text).toBe(text)
  })

  test('noDone leaves out the event that says nothing is missing', async () => {
    const end = /event: message_stop|\[DONE\]|event: response.completed/
    expect((await hear({ text })).text).toMatch(end)
    const { text: wire, isBroken } = await hear({ text, noDone: true })
    expect(isBroken).toBe(false)
    expect(wire).not.toMatch(end)
  })

  test('noFinalBlankLine ends with the line itself', async () => {
    const { text: wire } = await hear({ text, noFinalBlankLine: true })
    expect(wire).toMatch(/[^\n]\n$/)
  })

  test('a reader who hangs up is noticed with the pieces written so far', async () => {
    await send(upstream.url, '/control/reset', {})
    const path = {
      messages: '/v1/messages',
      chat: '/v1/chat/completions',
      responses: '/v1/responses',
    }
    const [tokens, paceMs] = [1000, 10]
    const body = bodyOf(way, scripted({ tokens, paceMs }))
    await send(upstream.url, path[dialect], body, { hangUpAfterBytes: 3000 })
    await expect.poll(async () => (await state()).hungUp).toHaveLength(1)
    const [{ pieces, afterMs }] = (await state()).hungUp
    expect(pieces).toBeGreaterThan(0)
    expect(pieces).toBeLessThan(100)
    expect(afterMs).toBeLessThan(tokens * paceMs)
    expect((await state()).open).toBe(0)
  })
})

test('response.failed can be the failure of a response stream', async () => {
  const way = { dialect: 'responses', stream: true } as const
  const errorAfter = { pieces: 1, type: 'response.failed', message: 'Enough.' }
  const last = dataIn((await ask(upstream.url, way, { errorAfter })).text).at(-1)
  expect(last).toMatchObject({ type: 'response.failed', response: { status: 'failed' } })
  expect(recordOf(last?.['response'])).toMatchObject({ error: { message: 'Enough.' } })
})

test('a plain answer fails with 500 where a stream would have its error event', async () => {
  const errorAfter = { pieces: 1, type: 'odd_error', message: 'Enough.' }
  const { status, text: body } = await ask(
    upstream.url,
    { dialect: 'chat', stream: false },
    { errorAfter },
  )
  expect(status).toBe(500)
  expect(JSON.parse(body).error).toMatchObject({ type: 'odd_error', message: 'Enough.' })
})

test('a reader who does not read holds the writer back', async () => {
  await send(upstream.url, '/control/reset', {})
  const script = { tokens: 100_000 }
  const body = JSON.stringify(bodyOf({ dialect: 'chat', stream: true }, scripted(script)))
  const { port } = new URL(upstream.url)
  const socket = connect(Number(port), '127.0.0.1')
  const head = `POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ncontent-length: ${body.length}\r\n\r\n`
  socket.pause().write(head + body)
  await expect.poll(async () => (await state()).open, { timeout: 5000 }).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 200))
  socket.destroy()
  await expect.poll(async () => (await state()).hungUp).toHaveLength(1)
  expect((await state()).hungUp[0].pieces).toBeLessThan(90_000)
}, 20_000)
