import { Pool } from 'undici'

import { CollectedAnswer, type OriginAnswer } from './calls/collected-answer.ts'
import {
  type AnswerReceiver,
  Exchange,
  type OpenRequests,
  type OriginRequest,
} from './calls/exchange.ts'
import { StreamedAnswer } from './calls/streamed-answer.ts'

type OriginSettings = {
  connections: number
  connectTimeoutMs: number
  /** Until the headers of the answer. */
  firstByteTimeoutMs: number
  /** Between two chunks of the answer. */
  idleTimeoutMs: number
}

/** Where requests go. Made once and used for many requests: its pool is found by the object itself. */
export type Origin = { origin: string; settings: OriginSettings }

/** All connections are in use. Calls do not queue for one, because the wait would have no deadline. */
export class PoolFull extends Error {
  override readonly name = 'PoolFull'
}

type OpenPool = { pool: Pool; open: OpenRequests }

/**
 * Connections to origins that the operator has configured: addresses may be private, and answers may be
 * streams of any length. Addresses from tenants go through `egress.ts` instead. Redirects are not followed.
 */
export function createOriginPools() {
  const pools = new Map<string, OpenPool>()
  const found = new WeakMap<Origin, OpenPool>()

  function findOrOpenPool(target: Origin): OpenPool {
    const last = found.get(target)
    if (last && !last.pool.closed) return last
    const key = keyOf(target)
    const pool = pools.get(key) ?? { pool: openPool(target), open: { count: 0 } }
    pools.set(key, pool)
    found.set(target, pool)
    return pool
  }

  /** Sends a request. All that comes of it, a failure to send it included, goes to the receiver. */
  function dispatch(target: Origin, request: OriginRequest, receiver: AnswerReceiver) {
    const { reason } = request.cancellation
    if (reason) {
      receiver.onFailure(reason)
      return
    }
    const { pool, open } = findOrOpenPool(target)
    if (open.count >= target.settings.connections) {
      receiver.onFailure(new PoolFull('All connections are in use.'))
      return
    }
    pool.dispatch(toDispatch(request), new Exchange(request, receiver, open))
  }

  return {
    dispatch,
    /** Sends a request whose answer is read while it arrives. Await its `head` first. */
    stream(target: Origin, request: OriginRequest): StreamedAnswer {
      const answer = new StreamedAnswer()
      dispatch(target, request, answer)
      return answer
    },
    /** Sends a request and reads its whole answer, up to `maxBytes`. */
    collect: (target: Origin, request: OriginRequest, maxBytes: number): Promise<OriginAnswer> =>
      new Promise((resolve, reject) => {
        dispatch(target, request, new CollectedAnswer(maxBytes, resolve, reject))
      }),
    /** Closes the pools of all other origins, once their calls have ended. */
    keepOnly(origins: readonly Origin[]) {
      const kept = new Set(origins.map(keyOf))
      for (const [key, { pool }] of pools) {
        if (kept.has(key)) continue
        pools.delete(key)
        pool.close().catch(() => undefined)
      }
    },
    async close() {
      await Promise.all([...pools.values()].map(({ pool }) => pool.destroy()))
    },
  }
}
export type OriginPools = ReturnType<typeof createOriginPools>

function toDispatch({ method, path, headers, body, isSilent = false }: OriginRequest) {
  const request = { method, path, headers, body }
  return isSilent ? { ...request, headersTimeout: 0, bodyTimeout: 0 } : request
}

const keyOf = ({ origin, settings }: Origin) => JSON.stringify([origin, settings])

function openPool({ origin, settings }: Origin): Pool {
  return new Pool(origin, {
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
}
