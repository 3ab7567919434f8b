import type { Readable } from 'node:stream'

import { Pool } from 'undici'

export type OriginSettings = {
  connections: number
  connectTimeoutMs: number
  /** Until the head of the answer. */
  firstByteTimeoutMs: number
  /** Between two pieces of the answer. */
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
  /** Whoever takes it reads it to its end or destroys it. */
  body: AnswerBody
}

export type AnswerBody = Readable & {
  /** Reads the rest and throws it away, so that the connection can be used again. */
  dump(options: { limit: number; signal?: AbortSignal }): Promise<void>
}

/** All connections are taken: whoever waits for one waits without a deadline, so nobody does. */
export class PoolFull extends Error {
  override readonly name = 'PoolFull'
}

/**
 * Connections to places that the operator's own configuration names: they may be private, and answers may
 * be endless. Everything that tenants name goes through `egress.ts` instead. No redirect is followed.
 */
export function createOriginPools() {
  const pools = new Map<string, Pool>()

  function poolOf(origin: string, settings: OriginSettings): Pool {
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
      const pool = poolOf(origin, settings)
      if (pool.stats.size >= settings.connections) throw new PoolFull('All connections are taken.')
      const { statusCode, headers, body } = await pool.request(call)
      body.on('error', () => undefined) // whoever reads it learns by reading; nobody may be reading now
      return { status: statusCode, headers, body }
    },
    /** Closes what is not in the list any more, once its calls have ended. */
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
