import type { Json, Piece } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import type { Protocol } from '#inference/protocol.ts'
import type { AnswerBody, OriginAnswer, OriginPools } from '#platform/origin-pools.ts'
import { started } from '#platform/started.ts'

import type { Upstream } from './catalogue.ts'
import { settingsOf } from './origins.ts'
import { readPieces } from './read-pieces.ts'
import {
  failureOf,
  failureOfStatus,
  TotalTimeout,
  type UpstreamFailure,
} from './upstream-failure.ts'

export type Attempt = {
  upstream: Upstream
  protocol: Protocol
  body: Json
  /** Of the caller's, where they mean something to this upstream. */
  headers: Record<string, string>
  signal: AbortSignal
}

export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: UpstreamFailure
  constructor(failure: UpstreamFailure) {
    super(failure.error.message, { cause: failure.error })
    this.failure = failure
  }
}

const refusalMaxBytes = 64 * 1024

/** Calls an upstream once. When this returns, the first piece of its answer is there. */
export async function openAnswer(
  pools: OriginPools,
  attempt: Attempt,
): Promise<AsyncIterableIterator<Piece>> {
  const deadline = startDeadline(attempt.signal, attempt.upstream.total_timeout_ms)
  try {
    const answer = await send(pools, attempt, deadline.signal)
    if (answer.status !== 200) throw new AttemptFailed(await readRefusal(answer, attempt))
    refuseOtherBodies(answer)
    return await started(readPieces(answer.body, { ...attempt, onEnd: deadline.end }))
  } catch (error) {
    deadline.end()
    attempt.signal.throwIfAborted()
    throw error instanceof AttemptFailed ? error : new AttemptFailed(failureOf(error))
  }
}

type Deadline = { signal: AbortSignal; end(): void }

/** Aborts with the caller, or when the whole answer takes too long. */
function startDeadline(caller: AbortSignal, totalMs: number): Deadline {
  const controller = new AbortController()
  const follow = () => controller.abort(caller.reason)
  const timer = setTimeout(() => controller.abort(new TotalTimeout()), totalMs)
  caller.addEventListener('abort', follow, { once: true })
  if (caller.aborted) follow()
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      caller.removeEventListener('abort', follow)
    },
  }
}

function send(
  pools: OriginPools,
  { upstream, protocol, body, headers }: Attempt,
  signal: AbortSignal,
) {
  const { origin, pathname } = new URL(upstream.base_url)
  return pools.request(origin, settingsOf(upstream), {
    method: 'POST',
    path: pathname.replace(/\/+$/, '') + protocol.path,
    headers: { ...headers, ...credentialsOf(upstream), ...ownHeaders },
    body: JSON.stringify(body),
    signal,
  })
}

const ownHeaders = {
  'content-type': 'application/json',
  accept: 'text/event-stream',
  'accept-encoding': 'identity', // a compressed stream arrives late and in lumps
  'user-agent': 'gatehouse',
}

export function credentialsOf({ kind, secret }: Upstream): Record<string, string> {
  if (secret === null) return {}
  return kind === 'anthropic' ? { 'x-api-key': secret } : { authorization: `Bearer ${secret}` }
}

function refuseOtherBodies({ headers, body }: OriginAnswer) {
  const type = String(headers['content-type'] ?? '')
  const encoding = String(headers['content-encoding'] ?? 'identity')
  if (type.startsWith('text/event-stream') && encoding === 'identity') return
  body.destroy()
  throw new BrokenAnswer('The upstream did not stream its answer.')
}

async function readRefusal(answer: OriginAnswer, attempt: Attempt): Promise<UpstreamFailure> {
  const { protocol, upstream } = attempt
  const text = withoutSecret(await readText(answer.body), upstream)
  const complaint = readComplaint(text, protocol)
  const isSpoken = complaint !== null && protocol.errorDialect !== null
  return failureOfStatus(answer.status, complaint, {
    retryAfter: answer.headers['retry-after']?.toString(),
    verbatim:
      isSpoken && protocol.errorDialect
        ? { dialect: protocol.errorDialect, status: answer.status, body: text }
        : null,
  })
}

/** Some providers repeat the key that they refuse: it is ours, and nobody else's business. */
const withoutSecret = (text: string, { secret }: Upstream) =>
  secret === null ? text : text.replaceAll(secret, '[removed]')

function readComplaint(text: string, protocol: Protocol) {
  try {
    return protocol.readError(JSON.parse(text) as Json)
  } catch {
    return null
  }
}

/** The start of a body that should be short. */
async function readText(body: AnswerBody): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes > refusalMaxBytes) break
  }
  return Buffer.concat(chunks).toString()
}
