import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createBalanceCache } from './balance-cache.ts'

function prepare(copiesMax = 10) {
  const clock = createTestClock()
  const cache = createBalanceCache({ now: clock.now, copiesMax })
  const nowMs = () => clock.now().getTime()
  return { clock, cache, nowMs }
}
const balance = { total: 100n, used: 10n, posted: 90n }

test('a balance is served for 5 s after its query was sent, not after the answer arrived', () => {
  const { clock, cache, nowMs } = prepare()
  const queriedAtMs = nowMs()
  clock.pass(3000)
  cache.put('org', balance, queriedAtMs)
  clock.pass(2000)
  expect(cache.read('org')).toMatchObject(balance)
  clock.pass(1)
  expect(cache.read('org')).toBeUndefined()
})

test('the answer to an earlier query that arrives late changes nothing', () => {
  const { clock, cache, nowMs } = prepare()
  const earlierMs = nowMs()
  clock.pass(100)
  cache.put('org', balance, nowMs())
  cache.put('org', { total: 1n, used: 1n, posted: 0n }, earlierMs)
  expect(cache.read('org')).toMatchObject(balance)
})

test('a settlement updates what remains, and does not make the copy newer', () => {
  const { clock, cache, nowMs } = prepare()
  cache.put('org', balance, nowMs())
  clock.pass(2500)
  cache.setPosted('org', 80n)
  expect(cache.read('org')).toMatchObject({ total: 100n, used: 10n, posted: 80n })
  clock.pass(2500)
  expect(cache.read('org')).toMatchObject({ posted: 80n })
  clock.pass(1)
  expect(cache.read('org')).toBeUndefined()
})

test('what a settlement returns may be 2 s old, and counts as that old', () => {
  const { clock, cache, nowMs } = prepare()
  cache.put('org', balance, nowMs())
  cache.setPosted('org', 80n)
  clock.pass(3000)
  expect(cache.read('org')).toMatchObject({ posted: 80n })
  clock.pass(1)
  expect(cache.read('org')).toBeUndefined()
})

test('a query that was sent before a settlement arrived does not undo it', () => {
  const { clock, cache, nowMs } = prepare()
  cache.put('org', balance, nowMs())
  clock.pass(100)
  const queriedAtMs = nowMs()
  clock.pass(100)
  cache.setPosted('org', 80n)
  clock.pass(100)
  cache.put('org', { total: 120n, used: 15n, posted: 90n }, queriedAtMs)
  expect(cache.read('org')).toMatchObject({ total: 120n, used: 15n, posted: 80n })
  cache.put('org', { total: 120n, used: 20n, posted: 100n }, nowMs())
  expect(cache.read('org')).toMatchObject({ posted: 100n })
})

test('a settlement of an organization that is not cached is not remembered', () => {
  const { cache } = prepare()
  cache.setPosted('org', 80n)
  expect(cache.dropUnread()).toEqual([])
})

test('a bounded number of balances is kept, those read last, for a minute', () => {
  const { clock, cache, nowMs } = prepare(2)
  for (const id of ['a', 'b']) cache.put(id, balance, nowMs())
  cache.read('a')
  cache.put('c', balance, nowMs())
  expect(cache.dropUnread()).toEqual(['a', 'c'])
  clock.pass(60_000)
  cache.put('a', balance, nowMs())
  expect(cache.dropUnread()).toEqual(['a', 'c'])
  cache.read('a')
  clock.pass(1)
  expect(cache.dropUnread()).toEqual(['a'])
})

test('after the clock was set back nothing old is served, and new answers are stored', () => {
  const { clock, cache, nowMs } = prepare()
  cache.put('org', balance, nowMs())
  cache.setPosted('org', 80n)
  clock.pass(-3_600_000)
  expect(cache.read('org')).toBeUndefined()
  cache.setPosted('org', 70n)
  expect(cache.read('org')).toBeUndefined()
  cache.put('org', { ...balance, posted: 5n }, nowMs())
  expect(cache.read('org')).toMatchObject({ posted: 5n })
})
