import { ApiError } from '#platform/api-error.ts'
import { within } from '#platform/deadline.ts'

import { type CallPool, createCallPool } from './call-pool.ts'

/** Runs work for a name, such as an organization id, within that name's concurrency limit. */
export type Gate = <T>(name: string, work: () => Promise<T>) => Promise<T>

type Options = { atOnce: number; waitingMax: number; waitMs: number; refusal?: string }

const defaultRefusal = 'Too many requests of this organization are waiting; retry later.'

/**
 * Limits concurrency per name: `atOnce` run at a time, `waitingMax` more wait for at most `waitMs`, and
 * further ones are refused (529). Work that has waited too long is removed from the queue, never run later.
 */
export function createGate({
  atOnce,
  waitingMax,
  waitMs,
  refusal = defaultRefusal,
}: Options): Gate {
  const overloaded = () => new ApiError('overloaded', refusal)
  const bounds = { atOnce, waitingMax, waitingOfOneMax: waitingMax, createRefusal: overloaded }
  const pools = new Map<string, CallPool>()

  return async (name, work) => {
    const pool = pools.get(name) ?? createCallPool(bounds)
    pools.set(name, pool)
    if (!pool.tryEnter()) await within(waitMs, overloaded, (signal) => pool.enter(name, signal))
    try {
      return await work()
    } finally {
      pool.leave()
      if (pool.isIdle()) pools.delete(name)
    }
  }
}
