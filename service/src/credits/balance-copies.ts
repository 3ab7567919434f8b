import { ApiError } from '#platform/api-error.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import type { Log } from '#platform/log.ts'

import { createBalanceMemory } from './balance-memory.ts'
import { type Balance, readBalances } from './read-store.ts'

type Options = { db: Db; now: Clock; log: Log; copiesMax?: number }

const refreshMs = 2000
const queryMaxMs = 500

/**
 * Balances that were read lately. One query every two seconds keeps all of them fresh, and each settlement
 * of this process tells what it left behind; so a balance is rarely asked for, and outlives a short outage.
 */
export function createBalanceCopies({ db, now, log, copiesMax = 10_000 }: Options) {
  const memory = createBalanceMemory({ now, copiesMax })
  const loading = new Map<string, Promise<void>>()
  let refreshing: Promise<void> | undefined
  let isAway = false

  async function load(organizationIds: readonly string[]) {
    const askedAtMs = now().getTime()
    const balances = await readBalances(db, organizationIds)
    for (const [id, balance] of balances) memory.keep(id, balance, askedAtMs)
  }

  /** Once for all who ask at the same time, however long it takes: a slow database is not asked twice. */
  function loadOne(organizationId: string): Promise<void> {
    const started = loading.get(organizationId)
    if (started) return started
    const ended = load([organizationId]).finally(() => void loading.delete(organizationId))
    loading.set(organizationId, ended)
    return ended
  }

  async function refreshAll() {
    const organizationIds = memory.readLately()
    if (organizationIds.length === 0) return
    try {
      await load(organizationIds)
      isAway = false
    } catch (error) {
      if (!isAway) log.problem('refreshing balances', error)
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
      const copy = memory.read(organizationId)
      if (copy) return copy
      await within(queryMaxMs, tooLate, () => loadOne(organizationId)).catch((error: unknown) => {
        throw unavailable(error)
      })
      const loaded = memory.read(organizationId)
      if (!loaded) throw unavailable()
      return loaded
    },
    note: memory.note,
    refresh,
    async stop() {
      clearInterval(timer)
      await refreshing
    },
  }
}
export type BalanceCopies = ReturnType<typeof createBalanceCopies>

const tooLate = () => new Error('the balance takes too long')

const unavailable = (cause?: unknown) =>
  new ApiError('credit_balance_unavailable', 'The balance cannot be known at the moment.', {
    headers: { 'retry-after': '2' },
    cause,
  })
