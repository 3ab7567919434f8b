import { dependencyUnavailable } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'

import type { CreditStore, Hold, Reserved, Settlement } from './credit-store.ts'
import { findFreeAccounts } from './lock-store.ts'
import { releaseHolds } from './release-store.ts'
import { createRepeating } from './repeat-failed.ts'
import { placeOf, reserveHolds } from './reserve-store.ts'
import { settleHolds } from './settle-store.ts'
import { createAside, type Placed } from './waiting-lines.ts'

type Options = {
  db: Db
  /** A call that has not been promised its credits by then is not begun. */
  reserveMaxMs?: number
}

/** Each round decides one more at least of those that an organization had in the first. */
const roundsMax = 128

/**
 * Balances in PostgreSQL. Calls that come together are held together and settled together, in one statement
 * and one commit: the number of commits is what a database can do least of. Errors are left to the caller;
 * after an error nobody knows whether it was done, and doing it again does no harm.
 */
export function createPostgresCreditStore({ db, reserveMaxMs = 1000 }: Options): CreditStore {
  const aside = createAside((organizationIds) => findFreeAccounts(db, organizationIds))
  /** Holds that were asked for by an attempt of which nothing was heard. */
  const unsure = new WeakSet<Hold>()
  const reserve = createRepeating({
    run: (holds: readonly Hold[]) => decide(holds, (distinct) => reserveHolds(db, distinct)),
    ...{ aside, onUnsure: (hold: Hold) => void unsure.add(hold) },
  })
  const settle = createRepeating({
    run: (settlements: readonly Settlement[]) =>
      decide(settlements, (distinct) => settleHolds(db, distinct)),
    aside,
  })
  const release = createRepeating({
    run: (holds: readonly Hold[]) => decide(holds, (distinct) => releaseHolds(db, distinct)),
    aside,
  })

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

  /**
   * For a caller that was told no, so that its call is never sent: an id is asked for by one call only.
   * Should this fail as well, the hold expires like any other.
   */
  async function letGo(hold: Hold, reserving: Promise<Reserved>) {
    const mayBeHeld = await reserving.then(
      ({ isHeld }) => isHeld,
      () => unsure.has(hold),
    )
    if (mayBeHeld) await release(hold).catch(() => undefined)
  }

  return {
    async reserve(hold) {
      const reserving = Promise.withResolvers<Reserved>()
      try {
        return await within(reserveMaxMs, tooLate, (signal) => {
          reserving.resolve(reserveInRounds(hold, signal))
          return reserving.promise
        })
      } catch (error) {
        void letGo(hold, reserving.promise)
        throw error
      }
    },
    settle: (settlement) => settle(settlement),
  }
}

const tooLate = () => dependencyUnavailable('credit ledger', new Error('the hold takes too long'))

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
