import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createPace } from './pace.ts'

/** More than any single step below asks for. */
const restMaxMs = 30_000
const steps = fc.array(
  fc.record({
    workMs: fc.integer({ min: 0, max: 500 }),
    idleMs: fc.integer({ min: 0, max: 5000 }),
  }),
  { minLength: 1, maxLength: 40 },
)
const shares = fc.constantFrom(0.05, 0.1, 0.25, 0.5, 1)

test('work takes at most its share of any stretch that begins with a step and ends with a rest', () => {
  fc.assert(
    fc.property(shares, steps, (share, list) => {
      const restAfter = createPace(share, restMaxMs)
      const done: { fromMs: number; workMs: number; restedAtMs: number }[] = []
      let nowMs = 0
      for (const { workMs, idleMs } of list) {
        const fromMs = nowMs
        nowMs += workMs
        nowMs += restAfter(workMs, nowMs)
        done.push({ fromMs, workMs, restedAtMs: nowMs })
        nowMs += idleMs
      }
      for (const [first, { fromMs }] of done.entries()) {
        let workedMs = 0
        for (const { workMs, restedAtMs } of done.slice(first)) {
          workedMs += workMs
          expect(workedMs).toBeLessThanOrEqual((restedAtMs - fromMs) * share + 1e-6)
        }
      }
    }),
  )
})

test('an idle hour earns nothing', () => {
  const restAfter = createPace(0.1, restMaxMs)
  expect(restAfter(10, 10)).toBe(90)
  expect(restAfter(10, 3_600_000)).toBe(90)
})

test('a rest that was not taken in full is owed', () => {
  const restAfter = createPace(0.5, restMaxMs)
  expect(restAfter(100, 100)).toBe(100)
  expect(restAfter(100, 200)).toBe(200)
})

test('pieces of work that overlap rest one after the other', () => {
  const restAfter = createPace(0.5, restMaxMs)
  expect([restAfter(100, 100), restAfter(100, 100), restAfter(100, 100)]).toEqual([100, 300, 500])
})

test('work with the whole core never rests', () => {
  const restAfter = createPace(1, restMaxMs)
  expect([restAfter(50, 50), restAfter(50, 100)]).toEqual([0, 0])
})

test('no rest is longer than the longest, and what goes beyond it is forgotten', () => {
  const restAfter = createPace(0.1, 1000)
  expect(restAfter(600_000, 600_000)).toBe(1000)
  expect(restAfter(10, 601_010)).toBe(90)
  // Also what pieces of work that overlap owe together.
  for (let piece = 0; piece < 100; piece++) restAfter(50, 700_000)
  expect(restAfter(50, 700_000)).toBe(1000)
  expect(restAfter(50, 701_050)).toBe(450)
})
