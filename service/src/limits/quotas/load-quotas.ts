import { dependencyUnavailable } from '#platform/api-error.ts'
import { createBatched } from '#platform/batched.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'

import type { QuotaAmounts, QuotaCounter } from './quota.ts'
import { type AskedCounter, readQuotaUsage } from './usage-store.ts'

const batchMax = 200
const waitingMax = 5000
/** Less than `knownMaxMs`: amounts that come later would not be used. */
const loadMaxMs = 1000

/**
 * Reads the amounts of counters that are missing, for example at the begin of a window or after Redis has lost them.
 * Throws 503 if the database does not answer: without them nothing can be decided.
 */
export function createQuotaLoader({ db }: { db: Db }) {
  const read = createBatched<AskedCounter, QuotaAmounts>({
    sizeMax: batchMax,
    waitingMax,
    run: (asked) => readQuotaUsage(db, asked),
  })
  const late = () => new Error('the amounts take too long')
  return async (
    organizationId: string,
    counters: readonly QuotaCounter[],
  ): Promise<ReadonlyMap<QuotaCounter, QuotaAmounts>> => {
    try {
      const reading = Promise.all(counters.map((counter) => read({ organizationId, counter })))
      const amounts = await within(loadMaxMs, late, () => reading)
      return new Map(counters.map((counter, index) => [counter, amounts[index] as QuotaAmounts]))
    } catch (error) {
      throw dependencyUnavailable('usage of your quota', error)
    }
  }
}
export type LoadQuotas = ReturnType<typeof createQuotaLoader>
