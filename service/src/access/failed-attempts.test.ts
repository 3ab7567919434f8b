import { expect, test } from 'vitest'

import { ApiError } from '#platform/api-error.ts'

import { createFailedAttempts } from './failed-attempts.ts'

const address = '203.0.113.7'
const seconds = 1000

function start({ guessersMax }: { guessersMax?: number } = {}) {
  let nowMs = Date.parse('2026-11-15T00:00:00Z')
  let guesses = 0
  let refusals = 0
  const attempts = createFailedAttempts({
    now: () => new Date(nowMs),
    steadyNow: () => new Date(nowMs),
    countedBy: 'address',
    guessesMax: 10,
    onRefused: () => refusals++,
    ...(guessersMax !== undefined && { guessersMax }),
  })
  /** The Retry-After of this guesser in seconds; 0 when it is not blocked. */
  function wait(name = address): number {
    try {
      attempts.refuseBlocked(name)
      attempts.refuseBlocked(name) // the first may have been the one try a second
      return 0
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      expect(error).toMatchObject({ status: 429, code: 'rate_limit_exceeded' })
      return Number(error.headers['retry-after'])
    }
  }
  return {
    wait,
    mayTry(name = address) {
      try {
        attempts.refuseBlocked(name)
        return true
      } catch {
        return false
      }
    },
    pass: (ms: number) => void (nowMs += ms),
    note: attempts.note,
    guess(count: number, name = address) {
      for (let each = 0; each < count; each++) attempts.note(name, `guess ${guesses++}`)
    },
    refusals: () => refusals,
  }
}

test('ten different keys may be wrong, the eleventh is refused', () => {
  const { guess, wait, refusals } = start()
  guess(9)
  expect([wait(), refusals()]).toEqual([0, 0])
  guess(1)
  expect([wait(), refusals()]).toEqual([60, 1])
})

test('a client that repeats one wrong key is never blocked', () => {
  const { note, wait } = start()
  for (let each = 0; each < 1000; each++) note(address, 'the same')
  expect(wait()).toBe(0)
})

test('one guesser does not block another', () => {
  const { guess, wait } = start()
  guess(11)
  expect(wait('203.0.113.8')).toBe(0)
})

test('guesses of different minutes are not added up', () => {
  const { guess, pass, wait } = start()
  guess(9)
  pass(60 * seconds)
  guess(9)
  expect(wait()).toBe(0)
  guess(1)
  expect(wait()).toBe(60)
})

test('guesses within a minute are added up however they are spread', () => {
  const { guess, pass, wait } = start()
  for (let each = 0; each < 11; each++) {
    guess(1)
    pass(5.9 * seconds)
  }
  expect(wait()).toBeGreaterThan(0)
})

test('a block ends exactly when its Retry-After says', () => {
  const { guess, pass, wait } = start()
  guess(11)
  pass(59_999)
  expect(wait()).toBe(1)
  pass(1)
  expect(wait()).toBe(0)
})

test('attempts during a block do not prolong it', () => {
  const { guess, pass, wait } = start()
  guess(11)
  for (let each = 0; each < 59; each++) {
    wait()
    pass(seconds)
  }
  expect(wait()).toBe(1)
})

test('guesses that were in flight when the block began do not prolong it', () => {
  const { guess, pass, wait } = start()
  guess(11)
  pass(10 * seconds)
  guess(50)
  expect(wait()).toBe(50)
})

test('each block in a row is twice as long, up to a quarter of an hour', () => {
  const { guess, pass, wait } = start()
  const blocks = [1, 2, 3, 4, 5, 6].map(() => {
    guess(11)
    const blocked = wait()
    pass(blocked * seconds)
    return blocked
  })
  expect(blocks).toEqual([60, 120, 240, 480, 900, 900])
})

test('after a block, ten more guesses are allowed', () => {
  const { guess, pass, wait } = start()
  guess(10)
  pass(60 * seconds)
  guess(9)
  expect(wait()).toBe(0)
})

test('a guesser that is quiet for a minute after a block starts from zero', () => {
  const { guess, pass, wait } = start()
  guess(11)
  pass(120 * seconds)
  guess(11)
  expect(wait()).toBe(60)
})

test('a second before that minute ends, the next block is still the longer one', () => {
  const { guess, pass, wait } = start()
  guess(11)
  pass(119 * seconds)
  guess(11)
  expect(wait()).toBe(120)
})

test('however many guessers there are, only the latest are remembered', () => {
  const { guess, wait } = start({ guessersMax: 3 })
  for (const name of ['a', 'b', 'c', 'd']) guess(11, name)
  expect(['a', 'b', 'c', 'd'].map(wait)).toEqual([0, 60, 60, 60])
})

test('a clock that was set back does not free a guesser', () => {
  const { guess, pass, wait } = start()
  guess(11)
  pass(-30 * seconds)
  expect(wait()).toBe(90)
})

test('while blocked, one key a second is still looked up: others may share the address', () => {
  const { guess, mayTry, pass } = start()
  guess(10)
  const tries = Array.from({ length: 100 }, () => {
    pass(100)
    return mayTry()
  })
  expect(tries.filter(Boolean)).toHaveLength(10)
})

test('a refusal carries the headers of a rate limit', () => {
  const now = new Date('2026-11-15T00:00:00Z')
  const attempts = createFailedAttempts({
    now: () => now,
    steadyNow: () => now,
    countedBy: 'address',
    guessesMax: 1,
    onRefused: () => undefined,
  })
  attempts.note(address, 'a')
  expect(() => attempts.refuseBlocked(address)).toThrow(
    'Rate limit reached for unknown keys on address: limit 1. Retry after 60s.',
  )
  try {
    attempts.refuseBlocked(address)
  } catch (error) {
    expect((error as ApiError).headers).toEqual({
      'retry-after': '60',
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-ratelimit-reset': String(now.getTime() / 1000 + 60),
      'x-ratelimit-scope': 'credential',
      'x-ratelimit-metric': 'requests',
    })
  }
})
