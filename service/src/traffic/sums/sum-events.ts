import type { Task, TaskTurn } from '#platform/background/run-task.ts'
import type { Db } from '#platform/database.ts'
import { transactNamed } from '#platform/transaction.ts'

import { addUp } from './add-up.ts'
import { boundKeys, boundSums } from './bound-rows.ts'
import { readCallFact } from './call-fact.ts'
import {
  listNews,
  lockOrganizationsWithNews,
  moveSummedSizes,
  summingSettings,
} from './news-store.ts'
import { addKeys, addSums, findFullDays, findFullSpans } from './sum-store.ts'

/** How many events are summed in one transaction, of all organizations together. */
const eventsMax = 1000
const organizationsMax = 50

type Summed = {
  organizations: number
  /** The last organization of the step; the next step begins after it. */
  last: string | undefined
  hasMore: boolean
}

/**
 * Adds numbered events of the organizations after this one to their sums. Sums and positions move in one transaction, so each event
 * counts once however often a worker dies. An organization is left to the worker that has locked it, and each gets an equal part of
 * the step: one with millions of calls does not keep the others waiting.
 */
const sumEvents = (db: Db, after: string): Promise<Summed> =>
  transactNamed(db, summingSettings, async (tx) => {
    const organizationIds = await lockOrganizationsWithNews(tx, after, organizationsMax)
    const summed = { organizations: organizationIds.length, last: organizationIds.at(-1) }
    if (organizationIds.length === 0) return { ...summed, hasMore: false }
    const limitEach = Math.floor(eventsMax / organizationIds.length)
    const { calls, sizes, hasMore } = await listNews(tx, organizationIds, limitEach)
    if (calls.length > 0) {
      const { sums, keys } = addUp(calls.map(readCallFact))
      const spans = await findFullSpans(tx, sums)
      await addSums(tx, boundSums(sums, spans.stored, spans.filled))
      const days = await findFullDays(tx, keys)
      await addKeys(tx, boundKeys(keys, days.stored, days.filled))
    }
    // Last, so that the heads are locked briefly: numbering needs them.
    await moveSummedSizes(tx, sizes)
    return { ...summed, hasMore }
  })

/** Sums all news, in rounds over the organizations. */
export async function sumAllEvents(db: Db, { rest, signal }: Pick<TaskTurn, 'rest' | 'signal'>) {
  let after = ''
  let hasMore = false
  while (!signal.aborted) {
    const summed = await sumEvents(db, after)
    hasMore ||= summed.hasMore
    after = summed.last ?? ''
    if (summed.organizations < organizationsMax) {
      if (!hasMore) return
      hasMore = false
      after = ''
    }
    await rest()
  }
}

export const trafficTask = (db: Db): Task => ({
  name: 'traffic_sums',
  everyMs: 2000,
  share: 0.5,
  rowsMax: eventsMax,
  failureCode: 'traffic_sums_failed',
  run: (turn) => sumAllEvents(db, turn),
})
