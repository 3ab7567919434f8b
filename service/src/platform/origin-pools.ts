import type { Readable } from 'node:stream'

import { Pool } from 'undici'

export type OriginSettings = {
  connections: number
  connectTimeoutMs: number
  /** Until the headers of the answer. */
  firstByteTimeoutMs: number
  /** Between two chunks of the answer. */
  idleTimeoutMs: number
}

export type OriginCall = {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  body: string
  signal: AbortSignal
}

export type OriginAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  /** Must be read to its end or destroyed, or its connection stays in use. */
  body: AnswerBody
}

export type AnswerBody = Readable & {
  /** Reads and discards the rest, so that the connection can be reused. */
  dump(options: { limit: number; signal?: AbortSignal }): Promise<void>
}

/** All connections are in use. Calls do not queue for one, because the wait would have no deadline. */
export class PoolFull extends Error {
  override readonly name = 'PoolFull'
}

/**
 * Connections to origins that the operator has configured: addresses may be private, and answers may be
 * streams of any length. Addresses from tenants go through `egress.ts` instead. Redirects are not followed.
 */
export function createOriginPools() {
  const pools = new Map<string, Pool>()

  function findOrOpenPool(origin: string, settings: OriginSettings): Pool {
    const key = JSON.stringify([origin, settings])
    const known = pools.get(key)
    if (known) return known
    const pool = new Pool(origin, {
      connections: settings.connections,
      pipelining: 1,
      keepAliveTimeout: 30_000,
      headersTimeout: settings.firstByteTimeoutMs,
      bodyTimeout: settings.idleTimeoutMs,
      connect: {
        timeout: settings.connectTimeoutMs,
        rejectUnauthorized: true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
      },
      allowH2: false,
    })
    pools.set(key, pool)
    return pool
  }

  return {
    async request(
      origin: string,
      settings: OriginSettings,
      call: OriginCall,
    ): Promise<OriginAnswer> {
      const pool = findOrOpenPool(origin, settings)
      if (pool.stats.size >= settings.connections) throw new PoolFull('All connections are in use.')
      const { statusCode, headers, body } = await pool.request(call)
      body.on('error', () => undefined) // a reader gets the error anyway; without one it would end the process
      return { status: statusCode, headers, body }
    },
    /** Closes the pools of all other origins, once their calls have ended. */
    keepOnly(origins: readonly { origin: string; settings: OriginSettings }[]) {
      const kept = new Set(origins.map((each) => JSON.stringify([each.origin, each.settings])))
      for (const [key, pool] of pools) {
        if (kept.has(key)) continue
        pools.delete(key)
        pool.close().catch(() => undefined)
      }
    },
    async close() {
      await Promise.all([...pools.values()].map((pool) => pool.destroy()))
    },
  }
}
export type OriginPools = ReturnType<typeof createOriginPools>
