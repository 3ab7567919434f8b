import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { type CircuitState, createCircuit } from './circuit.ts'

function setUp() {
  const clock = createTestClock()
  const states: CircuitState[] = []
  return {
    clock,
    states,
    circuit: createCircuit({ ...clock, onChange: (each) => states.push(each) }),
  }
}
const fail = (circuit: ReturnType<typeof createCircuit>, times: number) => {
  for (let each = 0; each < times; each++) circuit.failed()
}

test('five errors within a second open it, four do not', () => {
  const { circuit } = setUp()
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
  fail(circuit, 1)
  expect(circuit.state()).toBe('open')
})

test('a success between, or time, makes earlier errors void', () => {
  const { circuit, clock } = setUp()
  fail(circuit, 4)
  circuit.succeeded()
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
  clock.pass(1000)
  fail(circuit, 4)
  expect(circuit.state()).toBe('closed')
})

test('it comes back by way of a time in which others come back too', () => {
  const { circuit, clock, states } = setUp()
  fail(circuit, 5)
  circuit.returned()
  expect(circuit.state()).toBe('returning')
  clock.pass(1999)
  expect(circuit.state()).toBe('returning')
  clock.pass(1)
  expect(circuit.state()).toBe('closed')
  expect(states).toEqual(['open', 'returning', 'closed'])
})

test('one error while it comes back opens it again', () => {
  const { circuit } = setUp()
  fail(circuit, 5)
  circuit.returned()
  fail(circuit, 1)
  expect(circuit.state()).toBe('open')
})
