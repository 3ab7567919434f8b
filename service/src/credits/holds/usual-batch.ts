import type { CreditMove, Moved } from './credit-move.ts'

// A batch in which nothing is special is moved by `move_credits_by_sets` (migrations/0031), which answers with the accounts
// only: what it says of each item follows from their amounts.

/** What a batch moves in one account. */
export type AccountSums = {
  /** What its settlements charge, if each is charged in full. */
  charged: bigint
  /** What its new holds hold; null if there is none, which is not the same as holding nothing. */
  held: bigint | null
}

export function sumByAccount(moves: readonly CreditMove[]): Map<string, AccountSums> {
  const sums = new Map<string, AccountSums>()
  for (const { kind, organizationId, call } of moves) {
    let account = sums.get(organizationId)
    if (!account) sums.set(organizationId, (account = { charged: 0n, held: null }))
    if (kind === 'settle') account.charged += call.amount
    else if (kind === 'hold') account.held = (account.held ?? 0n) + call.amount
  }
  return sums
}

/** An account after a batch. */
export type MovedAccount = { posted: bigint; held: bigint }

/**
 * The answers that `move_credits` would have given, in the order of `moves`: settlements come before holds, and each item is
 * answered as if the items after it did not exist.
 */
export function answerUsual(
  moves: readonly CreditMove[],
  sums: ReadonlyMap<string, AccountSums>,
  after: ReadonlyMap<string, MovedAccount>,
): Moved[] {
  const running = new Map<string, MovedAccount & { available: bigint }>()
  for (const [id, { posted, held }] of after) {
    const { charged, held: newlyHeld } = sums.get(id) as AccountSums
    const heldBefore = held - (newlyHeld ?? 0n)
    running.set(id, { posted: posted + charged, held: heldBefore, available: posted - heldBefore })
  }
  return moves.map(({ kind, organizationId, call: { amount } }) => {
    const account = running.get(organizationId)
    if (!account) throw new Error(`${organizationId} is not among the accounts of its batch`)
    if (kind === 'settle') {
      account.posted -= amount
      return { outcome: 'settled', amount, rest: account.posted }
    }
    account.held += amount
    account.available -= amount
    return { outcome: 'held', amount: account.available, rest: account.held }
  })
}
