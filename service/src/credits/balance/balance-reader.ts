import { type Balance, readBalances } from '#credits/holds/account-store.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import type { Log } from '#platform/log.ts'

import { createBalanceCache } from './balance-cache.ts'

type Options = { db: Db; now: Clock; log: Log; copiesMax?: number }

const refreshMs = 2000
const queryMaxMs = 500

/**
 * Reads balances through a cache. One query every two seconds refreshes all balances that were read lately,
 * and each settlement of this process updates its own, so most reads need no query, and balances can be
 * read through a short outage of the database.
 */
export function createBalanceReader({ db, now, log, copiesMax = 10_000 }: Options) {
  const cache = createBalanceCache({ now, copiesMax })
  const loading = new Map<string, Promise<void>>()
  let refreshing: Promise<void> | undefined
  let isAway = false

  async function load(organizationIds: readonly string[]) {
    const queriedAtMs = now().getTime()
    const balances = await readBalances(db, organizationIds)
    for (const [id, balance] of balances) cache.put(id, balance, queriedAtMs)
  }

  /** Concurrent reads share one query, however slow it is. */
  function loadOne(organizationId: string): Promise<void> {
    const running = loading.get(organizationId)
    if (running) return running
    const started = load([organizationId]).finally(() => void loading.delete(organizationId))
    loading.set(organizationId, started)
    return started
  }

  async function refreshAll() {
    const organizationIds = cache.dropUnread()
    if (organizationIds.length === 0) return
    try {
      await load(organizationIds)
      isAway = false
    } catch (error) {
      if (!isAway) log.problem('balance_refresh_failed', error)
      isAway = true
    }
  }

  const refresh = () =>
    (refreshing ??= refreshAll().finally(() => {
      refreshing = undefined
    }))
  const timer = setInterval(() => void refresh(), refreshMs)
  timer.unref()

  return {
    async read(organizationId: string): Promise<Balance> {
      const copy = cache.read(organizationId)
      if (copy) return copy
      await within(queryMaxMs, tooLate, () => loadOne(organizationId)).catch((error: unknown) => {
        throw unavailable(error)
      })
      const loaded = cache.read(organizationId)
      if (!loaded) throw unavailable()
      return loaded
    },
    setPosted: cache.setPosted,
    refresh,
    async stop() {
      clearInterval(timer)
      await refreshing
    },
  }
}
export type BalanceReader = ReturnType<typeof createBalanceReader>

const tooLate = () => new Error('the balance takes too long')

const unavailable = (cause?: unknown) =>
  new ApiError('credit_balance_unavailable', 'The balance cannot be read at the moment.', {
    headers: { 'retry-after': '2' },
    cause,
  })
