import { beforeEach, expect, test, vi } from 'vitest'

import { type Attempt, repeatIfNoisy } from './repeat-if-noisy.ts'

beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined)
  return () => void vi.restoreAllMocks()
})

/** Each attempt measures its own number, with others taking these shares of the cores in turn. */
const attempts = (...shares: number[]) => {
  let done = 0
  return vi.fn<() => Promise<Attempt>>(async () => {
    const othersShare = shares[done++] ?? 0
    return { figures: { plainCpu: { value: done } }, noise: { othersShare, bareSpread: 1 } }
  })
}

test('a quiet section is measured once', async () => {
  const attempt = attempts(0.1)
  expect(await repeatIfNoisy(attempt, { mayRepeat: true })).toEqual({ plainCpu: { value: 1 } })
  expect(attempt).toHaveBeenCalledTimes(1)
})

test('a noisy one is measured again, and the second result counts', async () => {
  expect(await repeatIfNoisy(attempts(0.5, 0), { mayRepeat: true })).toEqual({
    plainCpu: { value: 2 },
  })
})

test('what was noisy twice is reported as noisy, and not measured a third time', async () => {
  const attempt = attempts(0.5, 0.5)
  expect(await repeatIfNoisy(attempt, { mayRepeat: true })).toEqual({
    plainCpu: { value: 2, isNoisy: true },
  })
  expect(attempt).toHaveBeenCalledTimes(2)
})

test('a quick run marks and does not repeat', async () => {
  const attempt = attempts(0.5, 0)
  expect(await repeatIfNoisy(attempt, { mayRepeat: false })).toEqual({
    plainCpu: { value: 1, isNoisy: true },
  })
})
