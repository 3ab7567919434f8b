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
  /** Calls that are held and not settled yet. */
  const open = new Set<string>()
  let onLastSettled = () => {}
  const outage = createOutage(log)

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
    } catch (error) {
      await backlog.keep(settlement).catch((cause: unknown) => {
        log.problem('a settlement can neither be made nor written down', cause)
        throw dependencyUnavailable('credit ledger', error)
      })
      return null
    }
  }

  return {
    /** Throws where nothing is held: 402 when the balance is too low, 503 when it cannot be known. */
    async reserve(hold: Hold): Promise<void> {
      if (!backlog.canTakeMore()) throw dependencyUnavailable('credit ledger')
      const reserved = await store.reserve(hold).catch(refuse)
      outage.isOver()
      if (!reserved.isHeld) throw insufficientCredits(hold.amount, reserved.available)
      open.add(hold.id)
    },
    /** Null: it is written down, and the balance is not known. */
    async settle(settlement: Settlement): Promise<Settled | null> {
      const { id, meta } = settlement
      if (meta.usage_source === 'local-estimate') metrics.settlementsEstimated.inc()
      try {
        return await settleOrWriteDown(settlement)
      } finally {
        open.delete(id)
        if (open.size === 0) onLastSettled()
      }
    },
    /** Comes after the last call was answered or cut. */
    async stop() {
      const allSettled = new Promise<void>((resolve) => (onLastSettled = resolve))
      const late = () => new Error(`${open.size} calls are not settled yet`)
      if (open.size > 0) {
        await within(stopMaxMs, late, () => allSettled).catch((error: unknown) =>
          log.problem('stopping', error),
        )
      }
      await backlog.stop()
    },
  }
}
export type Credits = ReturnType<typeof createCredits>

/** Told when it begins and when it ends, and not by every call in between. */
function createOutage(log: Log) {
  let isAway = false
  return {
    isOn(error: unknown) {
      if (!isAway) log.problem('no credits can be held', error)
      isAway = true
    },
    isOver() {
      if (isAway) log.event('credits_can_be_held')
      isAway = false
    },
  }
}

const insufficientCredits = (needed: bigint, available: bigint) =>
  new ApiError(
    'insufficient_credits',
    `This call may cost up to ${needed} credits and ${available} are available. Add credits, or ask for less output.`,
  )
