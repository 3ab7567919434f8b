import { expect, test } from 'vitest'

import { chatUpstreamFormat } from '#formats/chat-completions/chat-completion-format.ts'
import { StreamedAnswer } from '#platform/calls/streamed-answer.ts'

import type { Upstream } from './catalogue.ts'
import { PieceReader } from './read-pieces.ts'

const chunk = (delta: object, finish_reason: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
const words = ['Grüße', ' an', ' 世界', ' \ud83d\ude00']
const text = `: ping\n\n${words.map((content) => chunk({ content })).join('')}`
const stop = chunk({}, 'stop')
const done = 'data: [DONE]\n\n'

function open() {
  const answer = new StreamedAnswer()
  answer.onHead(200, {})
  const upstream = { secret: 'sk-secret' } as Upstream
  const reader = new PieceReader(answer, { format: chatUpstreamFormat, upstream })
  return { answer, reader }
}

/** The bytes, the texts and the number of all pieces. */
async function readAll(reader: PieceReader) {
  let bytes = Buffer.alloc(0)
  const texts: string[] = []
  let pieces = 0
  for (let piece = await reader.read(); piece; piece = await reader.read()) {
    pieces++
    for (const { events, source } of piece.frames) {
      bytes = Buffer.concat([bytes, source.bytes])
      for (const event of events) if (event.type === 'block_delta') texts.push(event.text)
    }
  }
  return { bytes: bytes.toString(), texts, pieces }
}

test('an answer in one chunk is one piece', async () => {
  const { answer, reader } = open()
  answer.onBytes(Buffer.from(text + stop + done))
  answer.onEnd()
  expect(await readAll(reader)).toEqual({ bytes: text + stop + done, texts: words, pieces: 1 })
})

test('an answer that comes byte by byte is the same answer', async () => {
  const { answer, reader } = open()
  const all = readAll(reader)
  for (const byte of Buffer.from(text + stop + done)) {
    answer.onBytes(Buffer.of(byte))
    await new Promise((resolve) => setImmediate(resolve))
  }
  answer.onEnd()
  const { bytes, texts } = await all
  expect([bytes, texts]).toEqual([text + stop + done, words])
})

test('pings alone are no piece: they come with the first frame of the answer', async () => {
  const { answer, reader } = open()
  const first = reader.read()
  answer.onBytes(Buffer.from(': ping\n\n'))
  await new Promise((resolve) => setImmediate(resolve))
  answer.onBytes(Buffer.from(chunk({ content: 'Hi' })))
  expect((await first)?.frames.map(({ source }) => source.bytes.toString())).toEqual([
    ': ping\n\n',
    chunk({ content: 'Hi' }),
  ])
})

test('an answer without an end marker is finished if it was complete, and broken if it was not', async () => {
  const complete = open()
  complete.answer.onBytes(Buffer.from(text + stop))
  complete.answer.onEnd()
  expect((await readAll(complete.reader)).texts).toEqual(words)
  const cut = open()
  cut.answer.onBytes(Buffer.from(text))
  cut.answer.onEnd()
  expect((await cut.reader.read())?.frames).toHaveLength(words.length + 1)
  await expect(cut.reader.read()).rejects.toThrow('ended in the middle')
})

test('frames before a broken one are read, then the problem is thrown', async () => {
  const { answer, reader } = open()
  answer.onBytes(Buffer.from(`${chunk({ content: 'Hi' })}data: {broken\n\n`))
  expect((await reader.read())?.frames).toHaveLength(1)
  await expect(reader.read()).rejects.toThrow('not JSON')
  expect(await reader.read()).toBeUndefined()
})

test('what arrived before the connection broke is read, then the failure is thrown', async () => {
  const { answer, reader } = open()
  answer.onBytes(Buffer.from(text))
  answer.onFailure(new Error('reset'))
  expect((await reader.read())?.frames).toHaveLength(words.length + 1)
  await expect(reader.read()).rejects.toThrow('reset')
})

test.each([
  ['in its message', { message: 'bad key sk-secret' }],
  ['where its message is cut', { message: `${'x'.repeat(270)}sk-secret` }],
  ['as its code', { message: 'Bad key.', code: 'sk-secret' }],
])('an error that quotes our key %s is not passed on', async (_, error) => {
  const { answer, reader } = open()
  answer.onBytes(Buffer.from(`data: ${JSON.stringify({ error })}\n\n`))
  await expect(reader.read()).rejects.toThrow('An error quoted our key.')
})

test('what follows a finished answer is ignored', async () => {
  const { answer, reader } = open()
  answer.onBytes(Buffer.from(text + stop + done + chunk({ content: 'more' })))
  const { texts } = await readAll(reader)
  answer.onBytes(Buffer.from(chunk({ content: 'even more' })))
  expect(texts).toEqual(words)
  expect(answer.take()).toBeUndefined()
})
