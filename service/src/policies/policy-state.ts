import type { PolicyContent, PolicyState } from '@gatehouse/contract/policy'

type Mode = PolicyContent['mode']
export type Move = 'publish' | 'pause' | 'resume'

/**
 * The life of a policy (decisions, section 3). It begins as a draft that concerns nobody. Publishing
 * puts a version in force, and the state is then that version's mode. Pausing is an emergency stop: it
 * takes the version out of force at once, and publishing from `paused` makes a new version but does not
 * lift it; only resuming does. Editing the draft and deleting are possible in every state. null is
 * refused with 409.
 */
const moves = {
  draft: { publish: 'mode', pause: null, resume: null },
  monitoring: { publish: 'mode', pause: 'paused', resume: null },
  enforcing: { publish: 'mode', pause: 'paused', resume: null },
  paused: { publish: 'paused', pause: null, resume: 'mode' },
} as const satisfies Record<PolicyState, Record<Move, 'mode' | 'paused' | null>>

/** The state a move leads to, `mode` being that of the version in question; null if it is refused. */
export function stateAfter(state: PolicyState, move: Move, mode: Mode): PolicyState | null {
  const next = moves[state][move]
  return next === 'mode' ? mode : next
}

export const isInForce = (state: PolicyState) => state === 'monitoring' || state === 'enforcing'
