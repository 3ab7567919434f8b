import { ApiError, dependencyUnavailable } from '#platform/api-error.ts'
import { TooManyWaiting } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createDeadlines, within } from '#platform/deadline.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createSettlementBacklog } from './backlog/settlement-backlog.ts'
import { createHoldQueue } from './holds/hold-queue.ts'
import { createHeldCalls } from './holds/open-calls.ts'
import { formatUsd } from './money.ts'
import {
  type Billing,
  type CallQueue,
  type Charged,
  type Hold,
  type HoldResult,
  settleMaxMs,
  type Settlement,
} from './settlement.ts'
import { createUnbilledQueue } from './unbilled/unbilled-queue.ts'

type Options = {
  db: Db
  billing: Billing
  files: TrustedFiles
  hasFolder: boolean
  mayDeliver(): boolean
  now: Clock
  log: Log
  metrics: Metrics
  /** Called after every settlement with the balance that it left. */
  onBalance(organizationId: string, posted: bigint): void
}

/** When the process stops, calls that were cut off have this long to be settled. */
const stopMaxMs = 10_000

/** Holds and settles what calls cost, also across outages of the database. With BILLING=off it only records the calls. */
export function createCredits(options: Options) {
  const { log, metrics, onBalance, billing } = options
  const holdQueue = createHoldQueue({ db: options.db, isMetered: billing === 'metered' })
  const unbilledQueue = createUnbilledQueue(options)
  const queueOf = (isUnbilled: boolean): CallQueue => (isUnbilled ? unbilledQueue : holdQueue)
  const queue = queueOf(billing === 'off')
  /** Files of the backlog may come from a time, or a process, with another mode. */
  const settleKept = (kept: Settlement) => queueOf(kept.isOnlyRecorded === true).settle(kept)
  const backlog = createSettlementBacklog({ ...options, settle: settleKept })
  const openCalls = createHeldCalls()
  const settleDeadlines = createDeadlines(settleMaxMs)
  const logOutage = createLogThrottle(options)

  function toRefusal(error: unknown): ApiError {
    if (error instanceof TooManyWaiting) {
      return new ApiError('overloaded', 'Too many calls wait for the credit ledger.')
    }
    logOutage('credit_hold_failed', error)
    return dependencyUnavailable('credit ledger')
  }

  async function writeDown(settlement: Settlement): Promise<null> {
    await backlog.keep(billing === 'off' ? { ...settlement, isOnlyRecorded: true } : settlement)
    return null
  }

  return {
    /** Throws unless the credits are held: 402 if the balance is too low, 503 if it cannot be read. */
    async reserve(hold: Hold): Promise<void> {
      if (!backlog.canTakeMore()) throw dependencyUnavailable('credit ledger')
      openCalls.add(hold.id)
      let result: HoldResult
      try {
        result = await queue.reserve(hold)
      } catch (error) {
        openCalls.close(hold.id)
        throw toRefusal(error)
      }
      if (result.isHeld) return
      openCalls.close(hold.id)
      throw insufficientCredits(hold.amount, result)
    },
    /** Never throws: the caller has been served. Null if the settlement was written down to be charged later. */
    async settle(settlement: Settlement): Promise<Charged | null> {
      const { organizationId, id, amount, meta } = settlement
      if (meta.usage_source !== 'upstream' && amount > 0n) metrics.settlementsEstimated.inc()
      try {
        const { charged, posted } = await settleDeadlines.within(queue.settle(settlement), tooSlow)
        if (posted !== null) onBalance(organizationId, posted)
        if (charged < amount) metrics.settlementsWrittenOff.inc()
        return { charged, posted: billing === 'prepaid' ? posted : null }
      } catch {
        return await writeDown(settlement)
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

/** The settlement still runs then. It is harmless that it is also on disk. */
const tooSlow = () => new Error('the settlement takes too long')

type Refused = Extract<HoldResult, { isHeld: false }>

const insufficientCredits = (needed: bigint, { available, held }: Refused) =>
  new ApiError(
    'insufficient_credits',
    `This call may cost up to ${needed} credits (${formatUsd(needed)} USD); ${withUsd(available + held)} are in the account and ${withUsd(held)} of them are held by calls in flight. Add credits, send less input, or ask for less output.`,
  )

/** Callers count in credits, payers in dollars. */
const withUsd = (credits: bigint) => `${credits} (${formatUsd(credits)} USD)`
