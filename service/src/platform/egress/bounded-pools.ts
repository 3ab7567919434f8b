import { errors, Pool } from 'undici'
import type { buildConnector } from 'undici'

import { type CallPool, createCallPool } from '#platform/lines/call-pool.ts'

import { EgressFailed } from './egress-failed.ts'

export type PoolLimits = {
  /** To one origin. Further calls wait. */
  connections: number
  /** To all origins together. Further calls wait. */
  callsMax: number
  /** Origins without a call whose connections are kept; those not used for longest are closed first. */
  idleOriginsMax: number
  keepAliveMs: number
}

/** Calls that wait for one origin, and calls that wait for all of them. */
const waitingMax = 1000

type Connect = (signal: AbortSignal) => buildConnector.connector
type OpenPool = { pool: Pool; slots: CallPool; closing: AbortController; calls: number }
export type PoolKey = { origin: string; tls: string }

/**
 * Connection pools for origins that tenants choose. undici's `Agent` either keeps a pool for every origin it ever
 * saw or, at `maxOrigins`, refuses new ones, so that one tenant could keep out all others. Here an origin without
 * a call gives way, so there are never more sockets than connections × (callsMax + idleOriginsMax).
 */
export function createBoundedPools(limits: PoolLimits) {
  const pools = new Map<string, OpenPool>()
  const idle = new Map<string, OpenPool>() // in the order of their last use
  const calls = createSlots(limits.callsMax)
  let isClosed = false

  function take(key: string, origin: string, connect: Connect): OpenPool {
    const taken = pools.get(key) ?? openPool(origin, connect, limits)
    pools.set(key, taken)
    idle.delete(key)
    taken.calls += 1
    return taken
  }

  function giveBack(key: string, taken: OpenPool) {
    taken.calls -= 1
    if (taken.calls > 0) return
    idle.set(key, taken)
    for (const [oldest, { pool, closing }] of idle) {
      if (idle.size <= limits.idleOriginsMax) return
      idle.delete(oldest)
      pools.delete(oldest)
      pool.destroy().catch(() => undefined)
      closing.abort()
    }
  }

  return {
    /** Makes a call within the limits. It counts until the work has ended, whether or not the signal has aborted. */
    async use<T>(
      { origin, tls }: PoolKey,
      connect: Connect,
      signal: AbortSignal,
      work: (pool: Pool) => Promise<T>,
    ): Promise<T> {
      if (isClosed) throw new errors.ClientClosedError()
      const key = `${origin} ${tls}`
      const taken = take(key, origin, connect)
      try {
        return await taken.slots.run(everyone, signal, () =>
          calls.run(everyone, signal, () => work(taken.pool)),
        )
      } finally {
        giveBack(key, taken)
      }
    },
    /** Ends when the calls under way have ended. */
    async close() {
      isClosed = true
      await Promise.all([...pools.values()].map(({ pool }) => pool.close()))
    },
  }
}

/** Calls of all tenants wait in one line, in the order of their arrival. */
const everyone = 'everyone'
const createSlots = (atOnce: number) =>
  createCallPool({
    atOnce,
    waitingMax,
    waitingOfOneMax: waitingMax,
    createRefusal: () => new EgressFailed('Too many calls wait for a connection.'),
  })

function openPool(origin: string, connect: Connect, limits: PoolLimits): OpenPool {
  const closing = new AbortController()
  const pool = new Pool(origin, {
    connect: connect(closing.signal),
    connections: limits.connections,
    pipelining: 1,
    allowH2: false,
    keepAliveTimeout: limits.keepAliveMs,
    keepAliveMaxTimeout: limits.keepAliveMs,
    headersTimeout: 0, // the deadline of the call covers both
    bodyTimeout: 0,
  })
  return { pool, slots: createSlots(limits.connections), closing, calls: 0 }
}
