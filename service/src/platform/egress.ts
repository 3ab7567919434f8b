import type { Pool } from 'undici'

import { within } from './deadline.ts'
import { checkHeaders, checkTarget, readPrivateTarget } from './egress-target.ts'
import { createBoundedPools, type PoolLimits } from './egress/bounded-pools.ts'
import { type CallTls, createTlsContexts, nameTls } from './egress/call-tls.ts'
import { EgressFailed, explainFailure } from './egress/egress-failed.ts'
import { createTenantResolver, type Resolve, resolveBySystem } from './egress/find-addresses.ts'
import { type Guard, guardedConnector } from './egress/guarded-connector.ts'
import { isPublicAddress } from './egress/special-addresses.ts'

export { EgressFailed }

type EgressOptions = {
  /** The operator's `host:port` entries, the only way to http, an IP address or a private one. */
  privateTargets: readonly string[]
  /** Resolves all names but those that are listed. */
  resolve?: Resolve
  /** Whether an address may be called. Only tests replace it, to use a local server as a public one. */
  isPublic?: (address: string) => boolean
  /** Covers resolving, connecting and TLS. */
  connectTimeoutMs?: number
  /** Certificates to trust besides the usual ones, in PEM. */
  ca?: readonly string[]
  /** The ports of calls that name none; only 443 by default. */
  ports?: readonly number[]
  limits?: Partial<PoolLimits>
}

type EgressCall = {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Covers everything from resolving the name to the last byte of the answer. */
  deadlineMs: number
  answerLimitBytes: number
  ports?: readonly number[]
  /** Calls with different settings never share a connection. */
  tls?: CallTls | undefined
  signal?: AbortSignal
}

type EgressAnswer = {
  status: number
  headers: Record<string, string | string[] | undefined>
  body: Buffer
}

export type Egress = AsyncDisposable & {
  request(address: string, call: EgressCall): Promise<EgressAnswer>
  close(): Promise<void>
}

const operatorLimits = { connections: 64, callsMax: 256, idleOriginsMax: 64, keepAliveMs: 4000 }
const tenantLimits = { connections: 4, callsMax: 256, idleOriginsMax: 64, keepAliveMs: 30_000 }

/** The HTTP client for addresses that the operator has configured, such as the keys of token issuers. */
export function createEgress(options: EgressOptions): Egress {
  const limits = { ...operatorLimits, ...options.limits }
  return createClient({ ...options, limits, setting: 'EGRESS_PRIVATE_TARGETS' }, [
    options.resolve ?? resolveBySystem,
    options.resolve ?? resolveBySystem,
  ])
}

/**
 * The HTTP client for addresses that tenants have chosen. A listed private target is open to all of them, so the list
 * must be one that is meant for tenants, never the one for the operator's own addresses.
 */
export function createTenantEgress(options: EgressOptions): Egress {
  const limits = { ...tenantLimits, ...options.limits }
  return createClient({ ...options, limits, setting: 'EXPORT_PRIVATE_TARGETS' }, [
    options.resolve ?? createTenantResolver(),
    resolveBySystem,
  ])
}

function createClient(
  options: EgressOptions & { limits: PoolLimits; setting: string },
  [resolvePublic, resolveListed]: readonly [Resolve, Resolve],
): Egress {
  const { isPublic = isPublicAddress, connectTimeoutMs = 5000 } = options
  const privateTargets = options.privateTargets.map(readPrivateTarget)
  const guard: Guard = { privateTargets, resolvePublic, resolveListed, isPublic, connectTimeoutMs }
  const tlsFor = createTlsContexts(options.ca ?? [])
  const pools = createBoundedPools(options.limits)

  function call(url: URL, details: EgressCall, signal: AbortSignal): Promise<EgressAnswer> {
    const { tls = {} } = details
    return pools.use(
      { origin: url.origin, tls: nameTls(tls) },
      (closing) => guardedConnector(url, guard, tlsFor(tls), closing),
      signal,
      (pool) => send(pool, url, details, signal),
    )
  }

  return {
    async request(address, details) {
      const { ports = options.ports } = details
      const url = checkTarget(address, { privateTargets, ports, setting: options.setting })
      checkHeaders(details.headers ?? {})
      const { deadlineMs, signal } = details
      const late = () => new EgressFailed(`The destination did not answer within ${deadlineMs} ms.`)
      try {
        // undici ignores a signal until it is connected; this does not.
        return await within(deadlineMs, late, (either) => call(url, details, either), signal)
      } catch (error) {
        throw signal?.aborted ? new EgressFailed('The call was cancelled.') : explainFailure(error)
      }
    },
    close: () => pools.close(),
    [Symbol.asyncDispose]: () => pools.close(),
  }
}

async function send(
  pool: Pool,
  url: URL,
  { method, headers = {}, body = '', answerLimitBytes }: EgressCall,
  signal: AbortSignal,
): Promise<EgressAnswer> {
  const path = url.pathname + url.search
  const answer = await pool.request({ path, method, headers, body, signal })
  const answerBody = await readAnswer(answer.body, answerLimitBytes)
  if (answerBody) return { status: answer.statusCode, headers: answer.headers, body: answerBody }
  const message = `The answer is larger than ${answerLimitBytes} bytes.`
  throw new EgressFailed(message, { statusOfTooLarge: answer.statusCode })
}

/** Undefined if it is larger. */
async function readAnswer(
  body: AsyncIterable<Buffer>,
  limitBytes: number,
): Promise<Buffer | undefined> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of body) {
    sizeBytes += chunk.length
    if (sizeBytes > limitBytes) return undefined
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}
