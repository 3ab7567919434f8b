import { expect, test } from 'vitest'

import type { OutFrame } from './answer.ts'
import { joinSse } from './join-sse.ts'

const unchanged = (bytes: Buffer): OutFrame => ({ event: null, data: {}, bytes })
const edited = (data: OutFrame['data']): OutFrame => ({ event: null, data, bytes: null })
const stream = Buffer.from('data: 1\n\ndata: 22\n\ndata: 333\n\ndata: 4444\n\n')
const [one, two, three, four] = [
  stream.subarray(0, 9),
  stream.subarray(9, 19),
  stream.subarray(19, 30),
  stream.subarray(30),
].map(unchanged) as [OutFrame, OutFrame, OutFrame, OutFrame]
const textOf = (frames: readonly OutFrame[]) => joinSse(frames).toString()

test('frames that follow each other in the bytes of the upstream are not copied', () => {
  const joined = joinSse([two, three, four]) as Buffer
  expect(joined.toString()).toBe(stream.toString('utf8', 9))
  expect(joined.buffer).toBe(stream.buffer)
})

test('frames that do not follow each other come in the order in which they are given', () => {
  expect(textOf([one, three, four])).toBe('data: 1\n\ndata: 333\n\ndata: 4444\n\n')
  expect(textOf([four, one, two])).toBe('data: 4444\n\ndata: 1\n\ndata: 22\n\n')
  expect(textOf([one, one])).toBe('data: 1\n\ndata: 1\n\n')
  expect(textOf([unchanged(Buffer.from('a\n\n')), unchanged(Buffer.from('b\n\n'))])).toBe(
    'a\n\nb\n\n',
  )
})

test('a changed frame keeps its place among unchanged ones', () => {
  expect(textOf([one, two, edited({ x: 'ü' }), three, four, edited('[DONE]')])).toBe(
    'data: 1\n\ndata: 22\n\ndata: {"x":"ü"}\n\ndata: 333\n\ndata: 4444\n\ndata: [DONE]\n\n',
  )
})

test('one frame is itself, and none is nothing', () => {
  expect(joinSse([one])).toBe(one.bytes)
  expect(joinSse([edited('[DONE]')])).toBe('data: [DONE]\n\n')
  expect(joinSse([])).toBe('')
})
