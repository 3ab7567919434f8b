import { lookup } from 'node:dns/promises'
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
  /** How an address is judged. Only tests replace it, to let a local server stand for the internet. */
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

/** What went wrong on the way, in one sentence without addresses, header values or answers. */
class EgressFailed extends Error {
  override readonly name = 'EgressFailed'
}

/**
 * The only way out of the process. A listed private target is open to every caller of this client,
 * so one that serves tenant addresses must not be created with the list meant for upstreams.
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
        // undici heeds the signal only once it is connected, hence the race.
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
 * A name is resolved once: all its addresses are judged and those very addresses go to the socket.
 * A literal never reaches the lookup hook, so it is refused before; and the address the socket really
 * has is judged again. Trust depends on host and port alone, so pooled connections never mix.
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
  const connectListed = buildConnector({ ...shared, lookup: judgedLookup(resolve, () => true) })
  const connectPublic = buildConnector({ ...shared, lookup: judgedLookup(resolve, isPublic) })

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

const notPublic = () =>
  new EgressBlocked('The host name leads to an address outside the public internet.')

function judgedLookup(resolve: Resolve, isAllowed: (address: string) => boolean): LookupFunction {
  async function judge(host: string) {
    const answers = await resolve(host)
    // Copied, so that what is judged is what is used.
    const addresses = answers.map(({ address }) => ({ address, family: isIP(address) }))
    const [first] = addresses
    if (!first) throw new EgressFailed('The host name could not be resolved.')
    if (!addresses.every(({ address }) => isAllowed(address))) throw notPublic()
    return { first, addresses }
  }
  const judgeAnd = callbackify(judge)
  return (host, { all }, done) =>
    judgeAnd(host, (error, judged) => {
      if (error) return done(error, [])
      const { first, addresses } = judged
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
  const late = () => abort(`The destination did not answer within ${deadlineMs} ms.`)
  const timer = setTimeout(late, deadlineMs)
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

/** Other people's errors carry addresses and pieces of the answer: only their code leaves. */
function explain(error: unknown): Error {
  if (error instanceof EgressBlocked || error instanceof EgressFailed) return error
  const { name = 'unknown', code = name } = Object(error) as { name?: string; code?: string }
  if (/CERT|SIGNATURE|ISSUER/.test(code)) {
    return new EgressFailed(`The certificate of the destination was not accepted (${code}).`)
  }
  return new EgressFailed(sentences.get(code) ?? `The call to the destination failed (${code}).`)
}
