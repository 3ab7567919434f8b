import { dependencyUnavailable } from '#platform/api-error.ts'
import { createBatched, TooManyWaiting } from '#platform/batched.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import { isStoreAway } from '#platform/to-api-error.ts'

import type { CreditStore, Hold, Reserved, Settlement } from './credit-store.ts'
import { placeOf, reserveHolds } from './reserve-store.ts'
import { settleHolds } from './settle-store.ts'

type Options = {
  db: Db
  /** A call that has not been promised its credits by then is not begun. */
  reserveMaxMs?: number
}

const sizeMax = 128
const waitingMax = 2000
/** Each round decides one more at least of those that an organization had in the first. */
const roundsMax = sizeMax

/**
 * Balances in PostgreSQL. Calls that come together are held together and settled together, in one statement
 * and one commit: the number of commits is what a database can do least of. Errors are left to the caller;
 * after an error nobody knows whether it was done, and doing it again does no harm.
 */
export function createPostgresCreditStore({ db, reserveMaxMs = 1000 }: Options): CreditStore {
  const reserve = createRepeating((holds: readonly Hold[]) =>
    decide(holds, (distinct) => reserveHolds(db, distinct)),
  )
  const settle = createRepeating((settlements: readonly Settlement[]) =>
    decide(settlements, (distinct) => settleHolds(db, distinct)),
  )

  async function reserveInRounds(hold: Hold, signal: AbortSignal): Promise<Reserved> {
    for (let round = 0; round < roundsMax; round++) {
      const { verdict, available } = await reserve(hold, signal)
      switch (verdict) {
        case 'held':
          return { isHeld: true }
        case 'refused':
          return { isHeld: false, available }
        case 'differs':
          throw new Error(`${hold.id} is held with another amount`)
        case 'again':
      }
    }
    throw new Error(`${hold.id} was undecided in every round`)
  }

  return {
    reserve: (hold) => within(reserveMaxMs, tooLate, (signal) => reserveInRounds(hold, signal)),
    settle: (settlement) => settle(settlement),
  }
}

const tooLate = () => dependencyUnavailable('credit ledger', new Error('the hold takes too long'))

type Placed = Pick<Hold, 'organizationId' | 'id'>

/** An item that stands in a batch twice is decided once. Where there is no account, there is no answer. */
async function decide<Item extends Placed, Answer>(
  items: readonly Item[],
  run: (distinct: Item[]) => Promise<Map<string, Answer>>,
): Promise<(Answer | undefined)[]> {
  const distinct = new Map<string, Item>()
  for (const item of items) if (!distinct.has(placeOf(item))) distinct.set(placeOf(item), item)
  const answers = await run([...distinct.values()])
  return items.map((item) => answers.get(placeOf(item)))
}

/**
 * Does it in batches, and once more where that fails. An item that the database cannot digest would spoil
 * every batch it is in, so unless the database is away the second attempt is made alone.
 */
function createRepeating<Item extends Placed, Answer>(
  run: (items: readonly Item[]) => Promise<(Answer | undefined)[]>,
) {
  const together = createBatched({ run, sizeMax, waitingMax })
  const alone = createBatched({ run, sizeMax: 1, waitingMax })

  async function repeat(error: unknown, item: Item, signal?: AbortSignal) {
    if (signal?.aborted || error instanceof TooManyWaiting) throw error
    if (!isStoreAway(error)) return alone(item, signal)
    // The first attempt may still have been under way, unseen, when this one began. Now it is over.
    await together(item, signal)
    return together(item, signal)
  }

  return async (item: Item, signal?: AbortSignal): Promise<Answer> => {
    const first = together(item, signal)
    const answer = await first.catch((error: unknown) => repeat(error, item, signal))
    if (answer === undefined) throw new Error(`${item.organizationId} has no credit account`)
    return answer
  }
}
