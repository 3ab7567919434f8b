import { expect, test } from 'vitest'

import { noUsage, type SourceFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'

import { responseCallerFormat } from './response-format.ts'
import { answering, credits, readAll, receipt, toSource } from './testing/golden-streams.ts'

const passThrough = () => responseCallerFormat.createPassThrough(answering)
const frameOf = (source: SourceFrame) => ({ events: [], source })

test('frames after the end, and end markers of other formats, are dropped', () => {
  const writer = passThrough()
  const [end, more] = toSource({ type: 'response.completed', response: { id: 'r' } }, { type: 'x' })
  const [marker] = parseStream([Buffer.from('data: [DONE]\n\n')])
  expect(writer.write(frameOf(marker!))).toEqual([])
  expect(writer.write(frameOf(end!))).toEqual([])
  expect(writer.write(frameOf(more!))).toEqual([])
  expect(writer.close(receipt)).toEqual([
    {
      event: 'response.completed',
      data: { type: 'response.completed', response: { id: 'r', ...credits } },
      bytes: null,
    },
  ])
})

test('frames without a name keep having none, and comments travel along', () => {
  const frames = parseStream([Buffer.from(': hello\n\ndata: {"type":"response.new","a":1}\n\n')])
  expect(frames.flatMap((source) => passThrough().write(frameOf(source)))).toEqual([
    { event: null, data: {}, bytes: Buffer.from(': hello\n\n') },
    {
      event: null,
      data: { type: 'response.new', a: 1 },
      bytes: Buffer.from('data: {"type":"response.new","a":1}\n\n'),
    },
  ])
})

test('an answer that has no end cannot be closed, nor folded', () => {
  expect(() => passThrough().close(receipt)).toThrow(BrokenAnswer)
  expect(() => responseCallerFormat.createWriter(answering).close(receipt)).toThrow(BrokenAnswer)
  expect(() => responseCallerFormat.fold([])).toThrow(BrokenAnswer)
})

test('a stream that failed has no plain answer', () => {
  const response = { error: { code: 'server_is_overloaded', message: 'Busy.' } }
  for (const data of [
    { type: 'response.failed', response },
    { type: 'error', ...response.error },
  ]) {
    expect(() => responseCallerFormat.fold([{ event: data.type, data, bytes: null }])).toThrow(
      expect.objectContaining({ code: 'overloaded' }),
    )
  }
})

test('usage that was counted here stands in place of the upstream’s', () => {
  const usage = { ...noUsage, inputTokens: 9, outputTokens: 4, cachedInputTokens: 3 }
  const response = { id: 'r', usage: { input_tokens: 1, output_tokens: 1, total_tokens: 2 } }
  for (const create of [
    responseCallerFormat.createPassThrough,
    responseCallerFormat.createWriter,
  ]) {
    const writer = create(answering)
    for (const frame of readAll(toSource({ type: 'response.completed', response }))) {
      writer.write(frame)
    }
    const [last] = writer.close({ ...receipt, usage })
    expect(last?.data).toMatchObject({
      response: {
        usage: {
          input_tokens: 9,
          input_tokens_details: { cached_tokens: 3 },
          output_tokens: 4,
          total_tokens: 13,
        },
      },
    })
  }
})
