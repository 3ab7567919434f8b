import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createBalanceMemory } from './balance-memory.ts'

function prepare(copiesMax = 10) {
  const clock = createTestClock()
  const memory = createBalanceMemory({ now: clock.now, copiesMax })
  const nowMs = () => clock.now().getTime()
  return { clock, memory, nowMs }
}
const balance = { total: 100n, used: 10n, remaining: 90n }

test('a copy is served for 5 s from when it was asked for, not from when it came', () => {
  const { clock, memory, nowMs } = prepare()
  const askedAtMs = nowMs()
  clock.pass(3000)
  memory.keep('org', balance, askedAtMs)
  clock.pass(2000)
  expect(memory.read('org')).toMatchObject(balance)
  clock.pass(1)
  expect(memory.read('org')).toBeUndefined()
})

test('an older answer that comes late changes nothing', () => {
  const { clock, memory, nowMs } = prepare()
  const earlierMs = nowMs()
  clock.pass(100)
  memory.keep('org', balance, nowMs())
  memory.keep('org', { total: 1n, used: 1n, remaining: 0n }, earlierMs)
  expect(memory.read('org')).toMatchObject(balance)
})

test('a settlement tells what is left, and makes the copy no younger', () => {
  const { clock, memory, nowMs } = prepare()
  memory.keep('org', balance, nowMs())
  clock.pass(2500)
  memory.note('org', 80n)
  expect(memory.read('org')).toMatchObject({ total: 100n, used: 10n, remaining: 80n })
  clock.pass(2500)
  expect(memory.read('org')).toMatchObject({ remaining: 80n })
  clock.pass(1)
  expect(memory.read('org')).toBeUndefined()
})

test('what a settlement tells may be 2 s old, and counts as that', () => {
  const { clock, memory, nowMs } = prepare()
  memory.keep('org', balance, nowMs())
  memory.note('org', 80n)
  clock.pass(3000)
  expect(memory.read('org')).toMatchObject({ remaining: 80n })
  clock.pass(1)
  expect(memory.read('org')).toBeUndefined()
})

test('an answer that was asked for before a settlement does not undo it', () => {
  const { clock, memory, nowMs } = prepare()
  memory.keep('org', balance, nowMs())
  clock.pass(100)
  const askedAtMs = nowMs()
  clock.pass(100)
  memory.note('org', 80n)
  clock.pass(100)
  memory.keep('org', { total: 120n, used: 15n, remaining: 90n }, askedAtMs)
  expect(memory.read('org')).toMatchObject({ total: 120n, used: 15n, remaining: 80n })
  memory.keep('org', { total: 120n, used: 20n, remaining: 100n }, nowMs())
  expect(memory.read('org')).toMatchObject({ remaining: 100n })
})

test('a settlement of somebody who is not read is not remembered', () => {
  const { memory } = prepare()
  memory.note('org', 80n)
  expect(memory.readLately()).toEqual([])
})

test('those read last are kept, at most so many, and for a minute', () => {
  const { clock, memory, nowMs } = prepare(2)
  for (const id of ['a', 'b']) memory.keep(id, balance, nowMs())
  memory.read('a')
  memory.keep('c', balance, nowMs())
  expect(memory.readLately()).toEqual(['a', 'c'])
  clock.pass(60_000)
  memory.keep('a', balance, nowMs())
  expect(memory.readLately()).toEqual(['a', 'c'])
  memory.read('a')
  clock.pass(1)
  expect(memory.readLately()).toEqual(['a'])
})

test('after the clock was set back nothing old is served, and new answers are taken', () => {
  const { clock, memory, nowMs } = prepare()
  memory.keep('org', balance, nowMs())
  memory.note('org', 80n)
  clock.pass(-3_600_000)
  expect(memory.read('org')).toBeUndefined()
  memory.keep('org', { ...balance, remaining: 5n }, nowMs())
  expect(memory.read('org')).toMatchObject({ remaining: 5n })
})
