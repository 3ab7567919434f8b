import { ApiError, dependencyUnavailable } from '#platform/api-error.ts'
import { TooManyWaiting } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createBacklog } from './backlog/backlog.ts'
import { createHoldQueue } from './holds/hold-queue.ts'
import { createOpenCalls } from './holds/open-calls.ts'
import { type Hold, settleMaxMs, type Settlement, type SettleResult } from './settlement.ts'

type Options = {
  db: Db
  files: TrustedFiles
  hasFolder: boolean
  now: Clock
  log: Log
  metrics: Metrics
  /** Called after every settlement with the credits that it left available. */
  onBalance(organizationId: string, available: bigint): void
}

/** When the process stops, calls that were cut off have this long to be settled. */
const stopMaxMs = 10_000

/** Holds and settles what calls cost, also across outages of the database. */
export function createCredits(options: Options) {
  const { log, metrics, onBalance } = options
  const holdQueue = createHoldQueue({ db: options.db })
  const backlog = createBacklog({ ...options, settle: holdQueue.settle })
  const openCalls = createOpenCalls()
  const logOutage = createLogThrottle(options)

  function throwUnavailable(error: unknown): never {
    if (error instanceof TooManyWaiting) {
      throw new ApiError('overloaded', 'Too many calls wait for the credit ledger.')
    }
    logOutage('credit_hold_failed', error)
    throw dependencyUnavailable('credit ledger')
  }

  async function settleOrWriteDown(settlement: Settlement): Promise<SettleResult | null> {
    const late = () => new Error('the settlement takes too long')
    try {
      const settled = await within(settleMaxMs, late, () => holdQueue.settle(settlement))
      onBalance(settlement.organizationId, settled.available)
      if (settled.charged < settlement.amount) metrics.settlementsWrittenOff.inc()
      return settled
    } catch {
      await backlog.keep(settlement)
      return null
    }
  }

  return {
    /** Throws unless the credits are held: 402 if the balance is too low, 503 if it cannot be read. */
    async reserve(hold: Hold): Promise<void> {
      if (!backlog.canTakeMore()) throw dependencyUnavailable('credit ledger')
      openCalls.add(hold.id)
      try {
        const result = await holdQueue.reserve(hold).catch(throwUnavailable)
        if (!result.isHeld) throw insufficientCredits(hold.amount, result.available)
      } catch (error) {
        openCalls.close(hold.id)
        throw error
      }
    },
    /** Never throws: the caller has been served. Null if the settlement was written down to be charged later. */
    async settle(settlement: Settlement): Promise<SettleResult | null> {
      const { id, amount, meta } = settlement
      const isEstimated = meta.usage_source !== 'upstream' && amount > 0n
      if (isEstimated) metrics.settlementsEstimated.inc()
      try {
        return await settleOrWriteDown(settlement)
      } finally {
        openCalls.close(id)
      }
    },
    /** To be called after the last call was answered or cut off. */
    async stop() {
      const late = () => new Error(`${openCalls.count()} calls are not settled yet`)
      const logUnsettled = (error: unknown) => log.problem('calls_unsettled_at_stop', error)
      await within(stopMaxMs, late, openCalls.allClosed).catch(logUnsettled)
      await backlog.stop()
    },
  }
}
export type Credits = ReturnType<typeof createCredits>

const insufficientCredits = (needed: bigint, available: bigint) =>
  new ApiError(
    'insufficient_credits',
    `This call may cost up to ${needed} credits and ${available} are available. Add credits, send less input, or ask for less output.`,
  )
