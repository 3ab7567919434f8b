import { expect, test } from 'vitest'

import type { AnswerEvent } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'

import { createBlockQueue } from './one-block-at-a-time.ts'

const opening = (index: number): AnswerEvent => ({
  type: 'block_started',
  index,
  block: { type: 'text' },
})
const delta = (index: number, text: string): AnswerEvent => ({ type: 'block_delta', index, text })
const ending = (index: number): AnswerEvent => ({ type: 'block_ended', index })
const seal = (index: number): AnswerEvent => ({
  type: 'block_sealed',
  index,
  opaque: { origin: 'responses', kind: 'encrypted', data: 'x', id: null },
})

test('what waited for its turn comes as one text, with its seal and its end', () => {
  const queue = createBlockQueue()
  const waiting = [opening(1), delta(1, 'a'), delta(1, 'b'), seal(1), ending(1), opening(2)]
  expect([opening(0), ...waiting, delta(2, 'c')].flatMap((event) => queue.push(event))).toEqual([
    opening(0),
  ])
  expect(queue.push(ending(0))).toEqual([
    ending(0),
    opening(1),
    delta(1, 'ab'),
    seal(1),
    ending(1),
    opening(2),
    delta(2, 'c'),
  ])
  expect(queue.push(delta(2, 'd'))).toEqual([delta(2, 'd')])
})

test('as many pieces or blocks as a model likes may wait', () => {
  const many = 300_000
  const queue = createBlockQueue()
  queue.push(opening(0))
  queue.push(opening(1))
  for (let count = 0; count < many; count++) queue.push(delta(1, 'a'))
  for (let index = 2; index < many; index++) {
    queue.push(opening(index))
    queue.push(ending(index))
  }
  queue.push(ending(1))
  const released = queue.push(ending(0))
  expect(released.slice(1, 4)).toEqual([opening(1), delta(1, 'a'.repeat(many)), ending(1)])
  expect(released).toHaveLength(1 + 3 + 2 * (many - 2))
})

test('more than 8 MiB are not kept back, and what was written makes room again', () => {
  const queue = createBlockQueue()
  const most = 'a'.repeat(8 * 1024 * 1024)
  queue.push(opening(0))
  queue.push(opening(1))
  queue.push(delta(1, most))
  queue.push(ending(0))
  queue.push(opening(2))
  queue.push(delta(2, most))
  expect(() => queue.push(delta(2, 'a'))).toThrow(BrokenAnswer)
})
