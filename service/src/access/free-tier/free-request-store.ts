import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { inSavepoint } from '#platform/transaction.ts'

/** How many free requests a network may use in a day. */
export type FreeCounter = { readonly network: Buffer; readonly max: number }

export type FreeClaim = {
  identities: readonly Buffer[]
  /** Locked in this order by every transaction: the busiest one last, so that it is held shortest. */
  counters: readonly FreeCounter[]
  requestId: string
  now: Date
}

export type FreeRefusal = 'used' | 'budget_spent'

/** The network that contains every caller. */
export const wholeInternet = Buffer.alloc(0)

const dayMs = 24 * 60 * 60 * 1000
const claimsKeptMs = 90 * dayMs
/** Only today's budget is ever read; the rest allows for clocks that differ. */
const budgetsKeptMs = 3 * dayMs

/** The day in UTC. Not a Date: the driver would write it in the time zone of this machine. */
const toDay = (at: Date) => sql<Date>`${at.toISOString().slice(0, 10)}::date`

/**
 * Spends the free request of an identity, once even under concurrency, and within every counter. The claim
 * is written under every configured master key, so that a process with a newer or an older current key
 * does not hand out a second request.
 */
export function claimFreeRequest(tx: Tx, claim: FreeClaim): Promise<'claimed' | FreeRefusal> {
  return inSavepoint<'claimed' | FreeRefusal>(
    tx,
    async () => {
      await insertClaims(tx, claim)
      for (const counter of claim.counters) await increment(tx, counter, claim.now)
      return 'claimed'
    },
    (error) => {
      if (error instanceof NotClaimed) return error.refusal
      throw error
    },
  )
}

class NotClaimed extends Error {
  readonly refusal: FreeRefusal

  constructor(refusal: FreeRefusal) {
    super(refusal)
    this.refusal = refusal
  }
}

/** While another transaction holds a claim of the same identity, the insert waits for its end. */
async function insertClaims(tx: Tx, { identities, requestId, now }: FreeClaim) {
  // Sorted against deadlocks: processes may list their master keys in different orders.
  const rows = identities
    .toSorted((left, right) => Buffer.compare(left, right))
    .map((identity) => ({ identity, request_id: requestId, requested_at: now }))
  const inserted = await tx
    .insertInto('free_request')
    .values(rows)
    .onConflict((conflict) => conflict.column('identity').doNothing())
    .returning('identity')
    .execute()
  if (inserted.length < rows.length) throw new NotClaimed('used')
}

async function increment(tx: Tx, { network, max }: FreeCounter, now: Date) {
  if (max < 1) throw new NotClaimed('budget_spent')
  const incremented = await tx
    .insertInto('free_budget')
    .values({ day: toDay(now), network, used: 1 })
    .onConflict((conflict) =>
      conflict
        .columns(['day', 'network'])
        .doUpdateSet(({ eb }) => ({ used: eb('free_budget.used', '+', 1) }))
        .where('free_budget.used', '<', max),
    )
    .returning('used')
    .executeTakeFirst()
  if (!incremented) throw new NotClaimed('budget_spent')
}

/** Why a claim would be refused now, or null. Advisory: only the claim itself decides. */
export async function findFreeRefusal(
  db: Db,
  { identities, counters, now }: Omit<FreeClaim, 'requestId'>,
): Promise<FreeRefusal | null> {
  const used = await db
    .selectFrom('free_request')
    .select('identity')
    .where('identity', 'in', identities)
    .limit(1)
    .executeTakeFirst()
  if (used) return 'used'
  const spent = await db
    .selectFrom('free_budget')
    .select('network')
    .where('day', '=', toDay(now))
    .where(({ or, and, eb }) =>
      or(
        counters.map(({ network, max }) =>
          and([eb('network', '=', network), eb('used', '>=', max)]),
        ),
      ),
    )
    .limit(1)
    .executeTakeFirst()
  return spent ? 'budget_spent' : null
}

/** Deletes the claim of this request, and no claim of another request. Counters stay as they are. */
export async function releaseFreeRequest(
  tx: Tx,
  { identities, requestId }: Pick<FreeClaim, 'identities' | 'requestId'>,
) {
  await tx
    .deleteFrom('free_request')
    .where('identity', 'in', identities)
    .where('request_id', '=', requestId)
    .execute()
}

/** Deletes at most `rowsMax` old claims and as many old counters; returns the larger of the two counts. */
export async function sweepFreeRequests(tx: Tx, now: Date, rowsMax: number): Promise<number> {
  const claims = await tx
    .deleteFrom('free_request')
    .where('identity', 'in', ({ selectFrom }) =>
      selectFrom('free_request')
        .select('identity')
        .where('requested_at', '<', new Date(now.getTime() - claimsKeptMs))
        .limit(rowsMax),
    )
    .executeTakeFirstOrThrow()
  const budgets = await tx
    .deleteFrom('free_budget')
    .where(({ eb, refTuple, selectFrom }) =>
      eb(
        refTuple('day', 'network'),
        'in',
        selectFrom('free_budget')
          .select(['day', 'network'])
          .where('day', '<', toDay(new Date(now.getTime() - budgetsKeptMs)))
          .limit(rowsMax)
          .$asTuple('day', 'network'),
      ),
    )
    .executeTakeFirstOrThrow()
  return Math.max(Number(claims.numDeletedRows), Number(budgets.numDeletedRows))
}
