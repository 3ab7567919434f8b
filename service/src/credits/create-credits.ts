import { ApiError, dependencyUnavailable } from '#platform/api-error.ts'
import { TooManyWaiting } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createBacklog } from './backlog.ts'
import type { Hold, Settled, Settlement } from './credit-store.ts'
import { createOpenCalls } from './open-calls.ts'
import { createPostgresCreditStore } from './postgres-credit-store.ts'

type Options = {
  db: Db
  files: TrustedFiles
  hasFolder: boolean
  now: Clock
  log: Log
  metrics: Metrics
  /** Told of every balance that a settlement has left behind. */
  onBalance(organizationId: string, available: bigint): void
}

/** A caller waits this long for its receipt; then the settlement is written down instead. */
const settleMaxMs = 2000
/** Calls that were cut when we stop have this long to be settled. */
const stopMaxMs = 10_000

/** Holds and settles what calls cost, also while the database comes and goes. */
export function createCredits(options: Options) {
  const { log, metrics, onBalance } = options
  const store = createPostgresCreditStore({ db: options.db })
  const backlog = createBacklog({ ...options, settle: store.settle })
  const open = createOpenCalls()
  const outage = createOutage(log, options.now)

  function refuse(error: unknown): never {
    if (error instanceof TooManyWaiting) {
      throw new ApiError('overloaded', 'Too many calls wait for the credit ledger.')
    }
    outage.isOn(error)
    throw dependencyUnavailable('credit ledger')
  }

  async function settleOrWriteDown(settlement: Settlement): Promise<Settled | null> {
    const late = () => new Error('the settlement takes too long')
    try {
      const settled = await within(settleMaxMs, late, () => store.settle(settlement))
      onBalance(settlement.organizationId, settled.available)
      if (settled.charged < settlement.amount) metrics.settlementsWrittenOff.inc()
      return settled
    } catch {
      await backlog.keep(settlement)
      return null
    }
  }

  return {
    /** Throws where nothing is held: 402 when the balance is too low, 503 when it cannot be known. */
    async reserve(hold: Hold): Promise<void> {
      if (!backlog.canTakeMore()) throw dependencyUnavailable('credit ledger')
      open.add(hold.id)
      try {
        const reserved = await store.reserve(hold).catch(refuse)
        if (!reserved.isHeld) throw insufficientCredits(hold.amount, reserved.available)
      } catch (error) {
        open.close(hold.id)
        throw error
      }
    },
    /** Null: it is written down, and the balance is not known. Never fails: whoever was served is told so. */
    async settle(settlement: Settlement): Promise<Settled | null> {
      const { id, amount, meta } = settlement
      const isEstimated = meta.usage_source === 'local-estimate' && amount > 0n
      if (isEstimated) metrics.settlementsEstimated.inc()
      try {
        return await settleOrWriteDown(settlement)
      } finally {
        open.close(id)
      }
    },
    /** Comes after the last call was answered or cut. */
    async stop() {
      const late = () => new Error(`${open.count()} calls are not settled yet`)
      const complain = (error: unknown) => log.problem('stopping', error)
      await within(stopMaxMs, late, open.allClosed).catch(complain)
      await backlog.stop()
    },
  }
}
export type Credits = ReturnType<typeof createCredits>

const toldEveryMs = 10_000

/** Told now and then while it lasts, and not by every call. */
function createOutage(log: Log, now: Clock) {
  let toldAtMs = -Infinity
  return {
    isOn(error: unknown) {
      const nowMs = now().getTime()
      if (Math.abs(nowMs - toldAtMs) < toldEveryMs) return
      toldAtMs = nowMs
      log.problem('credits cannot be held', error)
    },
  }
}

const insufficientCredits = (needed: bigint, available: bigint) =>
  new ApiError(
    'insufficient_credits',
    `This call may cost up to ${needed} credits and ${available} are available. Add credits, or ask for less output.`,
  )
