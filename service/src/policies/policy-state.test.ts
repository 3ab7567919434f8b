import { PolicyState } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import { isInForce, type Move, stateAfter } from './policy-state.ts'

/** The table of docs/specification/policies.md#states, cell by cell; `mode` is that of the version. */
const table: [state: PolicyState, move: Move, next: PolicyState | 'mode' | null][] = [
  ['draft', 'publish', 'mode'],
  ['draft', 'pause', null],
  ['draft', 'resume', null],
  ['monitoring', 'publish', 'mode'],
  ['monitoring', 'pause', 'paused'],
  ['monitoring', 'resume', null],
  ['enforcing', 'publish', 'mode'],
  ['enforcing', 'pause', 'paused'],
  ['enforcing', 'resume', null],
  ['paused', 'publish', 'paused'],
  ['paused', 'pause', null],
  ['paused', 'resume', 'mode'],
]

const modes = ['monitoring', 'enforcing'] as const

test.each(table)('from %s, %s leads to %s', (state, move, next) => {
  for (const mode of modes) {
    expect(stateAfter(state, move, mode)).toBe(next === 'mode' ? mode : next)
  }
})

test('the table has every state and every move', () => {
  const cells = new Set(table.map(([state, move]) => `${state} ${move}`))
  expect(cells.size).toBe(PolicyState.options.length * 3)
})

test('no move leads back to a draft', () => {
  const reached = table.flatMap(([state, move]) =>
    modes.map((mode) => stateAfter(state, move, mode)),
  )
  expect(reached).not.toContain('draft')
})

test.each([
  ['draft', false],
  ['monitoring', true],
  ['enforcing', true],
  ['paused', false],
] as const)('a policy in state %s is in force: %s', (state, expected) => {
  expect(isInForce(state)).toBe(expected)
})
