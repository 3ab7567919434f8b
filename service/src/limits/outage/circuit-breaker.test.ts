import { expect, test } from 'vitest'

import { RedisLate } from '#platform/redis.ts'
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
  for (let each = 0; each < times; each++) circuit.tryFailed(new Error('lost'))
}

test('five failures within two seconds open it, four do not', () => {
  const { circuit } = setUp()
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
  fail(circuit, 1)
  expect(circuit.state()).toBe('open')
})

test('failures before a success, or more than two seconds old, do not count', () => {
  const { circuit, clock } = setUp()
  fail(circuit, 4)
  circuit.trySucceeded()
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
  clock.pass(2000)
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
})

test('answers that are late together count once: it opens when Redis is slow for long', () => {
  const { circuit, clock } = setUp()
  const beLate = () => circuit.tryFailed(new RedisLate('late'))
  for (let call = 0; call < 100; call++) beLate()
  expect(circuit.state()).toBe('closed')
  for (let pause = 0; pause < 4; pause++) {
    expect(circuit.state()).toBe('closed')
    clock.pass(100)
    for (let call = 0; call < 100; call++) beLate()
  }
  expect(circuit.state()).toBe('open')
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
