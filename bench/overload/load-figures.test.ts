import { expect, test } from 'vitest'

import { loadFiguresOf, overloadFiguresOf } from './load-figures.ts'

const ended = (status: number, sentAt: number, doneAt: number) => ({ status, sentAt, doneAt })

test('an answer after the end of the load is not goodput; times of refusals are apart', () => {
  const calls = [
    ended(200, 0, 100),
    ended(200, 1500, 1900),
    ended(200, 1900, 2600),
    ended(503, 10, 12),
    ended(529, 10, 30),
    ended(0, 10, 500),
    ended(504, 10, 500),
    ended(504, 10, 600),
  ]
  expect(loadFiguresOf(calls, 2)).toEqual({
    sent: 4,
    served: 1,
    p50: 400,
    p99: 700,
    refusedP99: 20,
    others: '1 x 0, 2 x 504',
  })
})

test('the worst of several runs decides, with the median beside it', () => {
  expect(
    overloadFiguresOf([
      { goodput: 0.75, p99: 1600, redisLosses: 0 },
      { goodput: 0.5, p99: 800, redisLosses: 1 },
      { goodput: 1, p99: 900, redisLosses: 0 },
    ]),
  ).toEqual({
    overloadGoodput: { value: 50, median: 75 },
    overloadP99: { value: 1600, median: 900 },
    overloadRedis: { value: 1, median: 0 },
  })
})
