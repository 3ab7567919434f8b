import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createUpstreamBreaker } from './health.ts'

function prepare() {
  const clock = createTestClock()
  const breaker = createUpstreamBreaker(clock.now)
  const fail = (organizationId: string, times = 1, isUnreachable = false) => {
    const health = isUnreachable ? 'unreachable' : 'bad'
    for (let time = 0; time < times; time++) breaker.record(organizationId, health)
  }
  return { clock, breaker, fail }
}

test('the failures that one organization provokes keep out that one only', () => {
  const { breaker, fail, clock } = prepare()
  fail('attacker', 100)
  expect([breaker.mayTry('attacker'), breaker.mayTry('neighbour')]).toEqual([false, true])
  breaker.record('neighbour', 'good')
  expect([breaker.mayTry('attacker'), breaker.mayTry('neighbour')]).toEqual([false, true])
  clock.pass(5000)
  expect([breaker.mayTry('attacker'), breaker.mayTry('attacker')]).toEqual([true, false])
})

test('two organizations that see failures keep out themselves; a third keeps out all', () => {
  const { breaker, fail } = prepare()
  fail('one', 10)
  fail('two', 10)
  expect(['one', 'two', 'other'].map(breaker.mayTry)).toEqual([false, false, true])
  fail('three')
  expect(['one', 'two', 'three', 'other'].map(breaker.mayTry)).toEqual([false, false, false, false])
})

test('an upstream that one organization cannot reach is out of service for all', () => {
  const { breaker, fail, clock } = prepare()
  fail('one', 4, true)
  expect(breaker.mayTry('other')).toBe(true)
  fail('one', 1, true)
  expect(breaker.mayTry('other')).toBe(false)
  clock.pass(5000)
  expect([breaker.mayTry('other'), breaker.mayTry('one')]).toEqual([true, false])
  breaker.record('other', 'good')
  expect(breaker.mayTry('one')).toBe(true)
})

test('a refusal by the circuit of all does not use up the probe of an organization', () => {
  const { breaker, fail, clock } = prepare()
  for (const organizationId of ['one', 'two', 'three']) fail(organizationId, 5)
  clock.pass(5000)
  expect(['one', 'two', 'three'].map(breaker.mayTry)).toEqual([true, false, false])
  breaker.record('one', 'good')
  expect(['one', 'two', 'three'].map(breaker.mayTry)).toEqual([true, true, true])
})

test('asking whether an upstream is out does not use up its probe', () => {
  const { breaker, fail, clock } = prepare()
  expect(breaker.isPausing('one')).toBe(false)
  fail('one', 5)
  expect(['one', 'other'].map(breaker.isPausing)).toEqual([true, false])
  fail('two', 5, true)
  expect(['one', 'other'].map(breaker.isPausing)).toEqual([true, true])
  clock.pass(5000)
  expect(['one', 'other'].map(breaker.isPausing)).toEqual([false, false])
  expect([breaker.mayTry('other'), breaker.isPausing('other')]).toEqual([true, true])
})

test('at most a thousand circuits are kept', () => {
  const { breaker, fail } = prepare()
  for (let each = 0; each < 1001; each++) {
    fail(`org_${each}`, 5)
    breaker.record('healthy', 'good')
  }
  expect(breaker.mayTry('org_0')).toBe(true)
  expect(breaker.mayTry('org_1')).toBe(false)
})
