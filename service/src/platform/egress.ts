import { lookup, Resolver } from 'node:dns/promises'
import { isIP, type LookupFunction } from 'node:net'
import { createSecureContext, getCACertificates } from 'node:tls'
import { callbackify } from 'node:util'

import { Agent, buildConnector } from 'undici'

import {
  checkHeaders,
  checkTarget,
  EgressBlocked,
  isPrivateTarget,
  readPrivateTarget,
} from './egress-target.ts'
import { isPublicAddress } from './special-addresses.ts'

type Resolve = (host: string) => Promise<readonly { address: string; family: number }[]>

type EgressOptions = {
  /** The operator's `host:port` entries, the only way to http, an IP address or a private one. */
  privateTargets: readonly string[]
  resolve?: Resolve
  /** Whether an address may be called. Only tests replace it, to use a local server as a public one. */
  isPublic?: (address: string) => boolean
  /** Covers resolving, connecting and TLS. */
  connectTimeoutMs?: number
  /** Certificates to trust besides the usual ones, in PEM. */
  ca?: readonly string[]
}

type EgressCall = {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  headers?: Readonly<Record<string, string>>
  body?: string | Uint8Array
  /** Covers everything from resolving the name to the last byte of the answer. */
  deadlineMs: number
  answerLimitBytes: number
  ports?: readonly number[]
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

/** A call that failed. The message is one sentence without addresses, header values or answers. */
class EgressFailed extends Error {
  override readonly name = 'EgressFailed'
}

/**
 * The HTTP client for addresses that may come from tenants. A listed private target is open to every caller
 * of the client, so a client for tenant addresses must not be created with a list meant for upstreams.
 */
export function createEgress(options: EgressOptions): Egress {
  const privateTargets = options.privateTargets.map(readPrivateTarget)
  const agent = new Agent({
    connect: guardedConnector(options, privateTargets),
    allowH2: false,
    connections: 64,
    keepAliveMaxTimeout: 60_000,
    headersTimeout: 0, // the deadline covers both
    bodyTimeout: 0,
  })

  return {
    async request(address, call) {
      const url = checkTarget(address, { privateTargets, ports: call.ports })
      checkHeaders(call.headers ?? {})
      using deadline = startDeadline(call.deadlineMs, call.signal)
      const { signal } = deadline
      try {
        signal.throwIfAborted()
        // undici ignores the signal until it is connected, hence the race.
        return await Promise.race([rejectOnAbort(signal), send(agent, url, call, signal)])
      } catch (error) {
        throw explain(error)
      }
    },
    close: () => agent.close(),
    [Symbol.asyncDispose]: () => agent.close(),
  }
}

async function send(
  agent: Agent,
  url: URL,
  { method, headers = {}, body = '', answerLimitBytes }: EgressCall,
  signal: AbortSignal,
): Promise<EgressAnswer> {
  const path = url.pathname + url.search
  const answer = await agent.request({ origin: url.origin, path, method, headers, body, signal })
  const answerBody = await readAnswer(answer.body, answerLimitBytes)
  return { status: answer.statusCode, headers: answer.headers, body: answerBody }
}

/**
 * Connects to public addresses only. A name is resolved once: all its addresses are checked, and the same
 * addresses go to the socket. IP literals never reach the lookup hook, so they are refused before; the
 * socket's actual remote address is checked again. Whether a target is private depends only on host and
 * port, so pooled connections of the two kinds never mix.
 */
function guardedConnector(options: EgressOptions, privateTargets: readonly string[]) {
  const { resolve = resolveAll, isPublic = isPublicAddress, connectTimeoutMs = 5000 } = options
  const { ca } = options
  const shared = {
    timeout: connectTimeoutMs,
    allowH2: false,
    rejectUnauthorized: true, // whatever NODE_TLS_REJECT_UNAUTHORIZED says
    secureContext: createSecureContext(ca ? { ca: [...getCACertificates(), ...ca] } : {}),
  }
  const connectListed = buildConnector({ ...shared, lookup: checkedLookup(resolve, () => true) })
  const connectPublic = buildConnector({ ...shared, lookup: checkedLookup(resolve, isPublic) })

  const connect: buildConnector.connector = (target, done) => {
    const url = new URL(`${target.protocol}//${target.host ?? target.hostname}`)
    if (isPrivateTarget(url, privateTargets)) return connectListed(target, done)
    if (isIP(target.hostname) !== 0) return done(notPublic(), null)
    return connectPublic(target, (error, socket) => {
      if (error) return done(error, null)
      if (isPublic(socket.remoteAddress ?? '')) return done(null, socket)
      socket.destroy()
      return done(notPublic(), null)
    })
  }
  return connect
}

const resolveAll: Resolve = (host) => lookup(host, { all: true })

/** All addresses of a host name, of both families; none where the name does not exist. */
export type FindAddresses = (host: string) => Promise<readonly string[]>

/**
 * For names that are only checked and not called. Tenants choose them, and thereby how slow their name servers are:
 * unlike `lookup`, a resolver occupies none of the few threads on which files and upstreams wait. The hosts file is not
 * read.
 */
export function createAddressFinder(
  resolver: Pick<Resolver, 'resolve4' | 'resolve6'> = new Resolver({ timeout: 400, tries: 2 }),
): FindAddresses {
  return async (host) => {
    const families = [resolver.resolve4(host), resolver.resolve6(host)]
    return (await Promise.all(families.map((answer) => answer.catch(noneIfMissing)))).flat()
  }
}

function noneIfMissing(error: unknown): string[] {
  const { code = '' } = Object(error) as { code?: string }
  if (code === 'ENODATA' || code === 'ENOTFOUND') return []
  throw error
}

const notPublic = () =>
  new EgressBlocked('The host name leads to an address outside the public internet.')

function checkedLookup(resolve: Resolve, isAllowed: (address: string) => boolean): LookupFunction {
  async function resolveChecked(host: string) {
    const answers = await resolve(host)
    // Copied, so that the checked addresses are the ones that are used.
    const addresses = answers.map(({ address }) => ({ address, family: isIP(address) }))
    const [first] = addresses
    if (!first) throw new EgressFailed('The host name could not be resolved.')
    if (!addresses.every(({ address }) => isAllowed(address))) throw notPublic()
    return { first, addresses }
  }
  const resolveThen = callbackify(resolveChecked)
  return (host, { all }, done) =>
    resolveThen(host, (error, resolved) => {
      if (error) return done(error, [])
      const { first, addresses } = resolved
      return all ? done(null, addresses) : done(null, first.address, first.family)
    })
}

async function readAnswer(body: AsyncIterable<Buffer>, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let sizeBytes = 0
  for await (const chunk of body) {
    sizeBytes += chunk.length
    if (sizeBytes > limitBytes) {
      throw new EgressFailed(`The answer is larger than ${limitBytes} bytes.`)
    }
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

function startDeadline(deadlineMs: number, signal: AbortSignal | undefined) {
  const controller = new AbortController()
  const abort = (message: string) => controller.abort(new EgressFailed(message))
  const cancel = () => abort('The call was cancelled.')
  const onTimeout = () => abort(`The destination did not answer within ${deadlineMs} ms.`)
  const timer = setTimeout(onTimeout, deadlineMs)
  signal?.addEventListener('abort', cancel, { once: true })
  if (signal?.aborted) cancel()
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', cancel)
    },
  }
}

function rejectOnAbort(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true })
  })
}

const sentences = new Map([
  ['ECONNREFUSED', 'The destination refused the connection.'],
  ['ECONNRESET', 'The destination closed the connection.'],
  ['UND_ERR_SOCKET', 'The destination closed the connection.'],
  ['ENOTFOUND', 'The host name could not be resolved.'],
  ['EAI_AGAIN', 'The host name could not be resolved.'],
  ['ETIMEDOUT', 'The destination could not be connected in time.'],
  ['UND_ERR_CONNECT_TIMEOUT', 'The destination could not be connected in time.'],
])

/** Errors of libraries contain addresses and parts of the answer: only their code is passed on. */
function explain(error: unknown): Error {
  if (error instanceof EgressBlocked || error instanceof EgressFailed) return error
  const { name = 'unknown', code = name } = Object(error) as { name?: string; code?: string }
  if (/CERT|SIGNATURE|ISSUER/.test(code)) {
    return new EgressFailed(`The certificate of the destination was not accepted (${code}).`)
  }
  return new EgressFailed(sentences.get(code) ?? `The call to the destination failed (${code}).`)
}
