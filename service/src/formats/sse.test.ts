import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

import { durationRatio } from '@gatehouse/tools/testing/duration-ratio'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { BrokenAnswer } from './broken-answer.ts'
import type { RawFrame } from './framing.ts'
import { createSseParser, toSse } from './sse.ts'

const parse = (pieces: readonly Buffer[], frameMaxBytes = 10_000): RawFrame[] => {
  const parser = createSseParser({ frameMaxBytes })
  return [...pieces.flatMap((piece) => parser.feed(piece)), ...parser.end()]
}
const whole = (text: string) => parse([Buffer.from(text)])

test.each([
  ['LF', 'event: a\ndata: 1\n\ndata: 2\n\n'],
  ['CR LF', 'event: a\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n'],
  ['CR', 'event: a\rdata: 1\r\rdata: 2\r\r'],
  ['no space after the colon', 'event:a\ndata:1\n\ndata:2\n\n'],
  ['no empty line at the end', 'event: a\ndata: 1\n\ndata: 2'],
  ['a byte order mark', '\uFEFFevent: a\ndata: 1\n\ndata: 2\n\n'],
])('frames are told apart with %s', (_, text) => {
  expect(whole(text).map(({ event, data }) => [event, data])).toEqual([
    ['a', '1'],
    ['', '2'],
  ])
})

test('several data lines are one text, and a comment is a frame without data', () => {
  expect(whole('data: a\ndata:\ndata:  b\n\n: waiting\n\n').map(({ data }) => data)).toEqual([
    'a\n\n b',
    '',
  ])
})

test('a frame that does not end is refused before it fills the memory', () => {
  expect(() => parse([Buffer.from(`data: ${'x'.repeat(100)}`)], 100)).toThrow(BrokenAnswer)
})

test('a large frame in small pieces costs as much as ten frames of a tenth', async () => {
  const inPieces = (frames: number) => {
    const frame = `data: ${'x'.repeat(4_000_000 / frames)}\n\n`
    const bytes = Buffer.from(frame.repeat(frames))
    return Array.from({ length: Math.ceil(bytes.length / 100) }, (_, index) =>
      bytes.subarray(index * 100, (index + 1) * 100),
    )
  }
  const [one, ten] = [inPieces(1), inPieces(10)]
  const ratio = await durationRatio('one frame of 4 MB', {
    work: () => expect(parse(one, 5_000_000)).toHaveLength(1),
    baseline: () => expect(parse(ten, 5_000_000)).toHaveLength(10),
    limit: 4,
  })
  expect(ratio).toBeLessThan(4)
})

test('a chunk of CRs costs as much as one of LFs, and not the square of its length', async () => {
  const parseChunk = (lineEnd: string) => {
    const chunk = Buffer.from(lineEnd.repeat(1_000_000))
    return () => parse([chunk], 2_000_000)
  }
  const ratio = await durationRatio('1 MB of CR', {
    work: parseChunk('\r'),
    baseline: parseChunk('\n'),
    limit: 4,
  })
  expect(ratio).toBeLessThan(4)
})

test('a frame that arrives byte by byte takes little more memory than its bytes', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const bytesUsed = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const size = 1_000_000
  const source = Buffer.alloc(size, 'x')
  const before = bytesUsed()
  const parser = createSseParser({ frameMaxBytes: size })
  for (let index = 0; index < size; index++) parser.feed(source.subarray(index, index + 1))
  expect((bytesUsed() - before) / size).toBeLessThan(5)
  expect(parser.end()).toHaveLength(1)
})

/** Streams with every kind of line end, inside and between which pieces may be cut. */
const stream = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.string({ unit: 'grapheme', maxLength: 12 }) },
      { weight: 6, arbitrary: fc.constantFrom('\n', '\r\n', '\r', 'data: ', 'event: e', ':', ' ') },
    ),
    { maxLength: 60 },
  )
  .map((parts) => Buffer.from(parts.join('')))

test('any cutting into pieces gives the same frames, and together they are the bytes that came', () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(600), { maxLength: 30 }), (bytes, cuts) => {
      const places = [0, ...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].toSorted(
        (left, right) => left - right,
      )
      const pieces = places.slice(1).map((end, index) => bytes.subarray(places[index], end))
      const frames = parse(pieces)
      expect(frames).toEqual(parse([bytes]))
      expect(Buffer.concat(frames.map((frame) => frame.bytes))).toEqual(bytes)
    }),
    { numRuns: 2000 },
  )
})

test('what is written is read again as it was', () => {
  const frames = [
    { event: 'ping', data: { a: 'x\ny\u2028' }, bytes: null },
    { event: null, data: { b: 1 }, bytes: null },
    { event: null, data: '[DONE]' as const, bytes: null },
  ]
  const read = whole(frames.map(toSse).join(''))
  expect(read.map(({ event, data }) => [event, data])).toEqual([
    ['ping', JSON.stringify({ a: 'x\ny\u2028' })],
    ['', '{"b":1}'],
    ['', '[DONE]'],
  ])
})
