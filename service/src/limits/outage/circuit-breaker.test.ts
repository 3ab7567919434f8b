import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { type CircuitState, createCircuitBreaker } from './circuit-breaker.ts'

function setUp() {
  const clock = createTestClock()
  const states: CircuitState[] = []
  return {
    clock,
    states,
    circuit: createCircuitBreaker({ ...clock, onChange: (each) => states.push(each) }),
  }
}
const fail = (circuit: ReturnType<typeof createCircuitBreaker>, times: number) => {
  for (let each = 0; each < times; each++) circuit.tryFailed()
}

test('five failures within a second open it, four do not', () => {
  const { circuit } = setUp()
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
  fail(circuit, 1)
  expect(circuit.state()).toBe('open')
})

test('failures before a success, or more than a second old, do not count', () => {
  const { circuit, clock } = setUp()
  fail(circuit, 4)
  circuit.trySucceeded()
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
  clock.pass(1000)
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
})

test('it is returning for two seconds before it closes', () => {
  const { circuit, clock, states } = setUp()
  fail(circuit, 5)
  circuit.redisReturned()
  expect(circuit.state()).toBe('returning')
  clock.pass(1999)
  expect(circuit.state()).toBe('returning')
  clock.pass(1)
  expect(circuit.state()).toBe('closed')
  expect(states).toEqual(['open', 'returning', 'closed'])
})

test('one failure while it is returning opens it again', () => {
  const { circuit } = setUp()
  fail(circuit, 5)
  circuit.redisReturned()
  fail(circuit, 1)
  expect(circuit.state()).toBe('open')
})
