import type { PolicyContent, PolicyState } from '@gatehouse/contract/policy'

type Mode = PolicyContent['mode']
export type Move = 'publish' | 'pause' | 'resume'

/**
 * The states of a policy (docs/specification/policies.md#states). It begins as a draft, which affects no
 * request. Publishing puts a version in force, and the state becomes that version's mode. Pausing is an
 * emergency stop: it takes the version out of force at once. Publishing from `paused` makes a new version
 * but does not end the pause; only resuming does. Editing the draft and deleting are possible in every
 * state. A move to null is refused with 409.
 */
const moves = {
  draft: { publish: 'mode', pause: null, resume: null },
  monitoring: { publish: 'mode', pause: 'paused', resume: null },
  enforcing: { publish: 'mode', pause: 'paused', resume: null },
  paused: { publish: 'paused', pause: null, resume: 'mode' },
} as const satisfies Record<PolicyState, Record<Move, 'mode' | 'paused' | null>>

/** The state after a move, `mode` being the mode of the version concerned; null if the move is refused. */
export function stateAfter(state: PolicyState, move: Move, mode: Mode): PolicyState | null {
  const next = moves[state][move]
  return next === 'mode' ? mode : next
}

export const isInForce = (state: PolicyState) => state === 'monitoring' || state === 'enforcing'
