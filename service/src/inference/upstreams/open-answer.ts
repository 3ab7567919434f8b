import type { Frame, Json, Reader } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import type { Protocol } from '#inference/protocol.ts'
import { createSseParser, type SseFrame } from '#inference/sse.ts'
import type { ProtocolName } from '#inference/turn.ts'
import type { AnswerBody, OriginAnswer, OriginPools } from '#platform/origin-pools.ts'
import { started } from '#platform/started.ts'

import type { Upstream } from './catalogue.ts'
import { settingsOf } from './origins.ts'
import {
  failureOf,
  failureOfStatus,
  TotalTimeout,
  type UpstreamFailure,
} from './upstream-failure.ts'

/** What has arrived of an answer at once, and the format it is in. */
export type Piece = { protocol: ProtocolName; frames: readonly Frame[] }

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

const frameMaxBytes = 8 * 1024 * 1024
const refusalMaxBytes = 64 * 1024
const restMaxBytes = 64 * 1024
const restMaxMs = 1000
const earlyMax = 100

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
    return await started(readPieces(answer.body, attempt, deadline))
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

const speaksOfSecret = (problem: unknown, { secret }: Upstream) =>
  secret !== null && problem instanceof Error && problem.message.includes(secret)

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

async function* readPieces(
  body: AnswerBody,
  { protocol, upstream }: Attempt,
  deadline: Deadline,
): AsyncGenerator<Piece> {
  const parser = createSseParser({ frameMaxBytes })
  const reader = protocol.createReader()
  /** Comments and pings before the answer itself: with those alone it has not begun. */
  let early: Frame[] = []
  let hasBegun = false
  /** What came before a frame that makes no sense is still part of the answer. */
  function* toPieces(sent: readonly SseFrame[]): Generator<Piece> {
    const { frames, problem } = readFrames(sent, reader)
    hasBegun ||= frames.some(({ events }) => events.length > 0)
    if (!hasBegun) early.push(...frames.slice(0, earlyMax - early.length))
    else if (frames.length > 0) {
      yield { protocol: protocol.name, frames: early.length > 0 ? [...early, ...frames] : frames }
      early = []
    }
    if (problem)
      throw speaksOfSecret(problem, upstream) ? new BrokenAnswer('It told a secret.') : problem
  }
  try {
    // Left open when the answer is finished: what may follow is read away below.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      yield* toPieces(parser.feed(chunk))
      if (reader.isFinished()) break
    }
    if (!reader.isFinished()) yield* toPieces(parser.end())
    if (!reader.isFinished()) yield* toPieces([endOfStream])
    if (!reader.isFinished()) throw new BrokenAnswer('The answer ended in the middle.')
  } finally {
    deadline.end()
    if (reader.isFinished()) readRest(body)
    else body.destroy()
  }
}

/** A connection that has been read to its end can be used again; one that goes on and on cannot. */
function readRest(body: AnswerBody) {
  body
    .dump({ limit: restMaxBytes, signal: AbortSignal.timeout(restMaxMs) })
    .catch(() => body.destroy())
}

/** Some upstreams just stop when they have said all: the reader decides whether they had. */
const endOfStream: SseFrame = { event: '', data: '[DONE]', bytes: Buffer.alloc(0) }

function readFrames(sent: readonly SseFrame[], reader: Reader) {
  const frames: Frame[] = []
  try {
    for (const frame of sent) {
      if (reader.isFinished()) break
      const { event, data, bytes } = frame
      const source = { event, data, bytes, json: readJson(data) }
      frames.push({ events: reader.read(source), source })
    }
  } catch (error) {
    return { frames, problem: error }
  }
  return { frames, problem: undefined }
}

function readJson(data: string): Json {
  if (data === '' || data === '[DONE]') return {}
  let json: unknown
  try {
    json = JSON.parse(data)
  } catch {
    throw new BrokenAnswer('A frame is not JSON.')
  }
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json as Json
  throw new BrokenAnswer('A frame is not a JSON object.')
}
