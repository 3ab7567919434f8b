import type { Json, Piece } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import { asText, objectOf } from '#formats/json-values.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { AnswerHeaders } from '#platform/calls/exchange.ts'
import type { StreamedAnswer } from '#platform/calls/streamed-answer.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'
import { isOfType, plainMediaType, readPlainAnswer } from './open-plain-answer.ts'
import { callHeaders } from './origins.ts'
import { PieceReader } from './read-pieces.ts'
import {
  AttemptFailed,
  toFailure,
  toStatusFailure,
  TotalTimeout,
  type UpstreamFailure,
} from './upstream-failure.ts'

export type UpstreamAttempt = {
  upstream: Upstream
  format: UpstreamFormat
  /** The upstream's own name for the model. */
  model: string
  body: Json
  headers: Record<string, string>
  /** Whether the upstream is asked for a plain answer. Then `timeoutMs` is its only deadline. */
  isPlain: boolean
  /** How long the whole answer may take. */
  timeoutMs: number
  /** Set when an attempt fails: whether the upstream may have written something that was never seen. */
  mayHaveWritten: boolean
  /** The cancellation of the caller; of a plain answer, that of the process. */
  cancellation: Cancellation
}

export type OpenAnswer = {
  /** The first piece of the answer. */
  first: Piece
  /** Reads the other pieces; null if the first is the whole answer. */
  reader: PieceReader | null
}

const refusalMaxBytes = 64 * 1024

/** Calls an upstream once. When this resolves, the first piece of its answer has arrived. */
export async function openAnswer(
  pools: OriginPools,
  attempt: UpstreamAttempt,
): Promise<OpenAnswer> {
  const answer = send(pools, attempt)
  try {
    await answer.head()
    if (answer.status !== 200) throw new AttemptFailed(await readRefusal(answer, attempt))
    if (attempt.isPlain && isOfType(answer.headers, plainMediaType)) {
      return { first: await readPlainAnswer(answer, attempt), reader: null }
    }
    // Also understands an upstream that streams although it was asked for a plain answer.
    refuseOtherBodies(answer, attempt.format)
    const reader = new PieceReader(answer, attempt)
    const first = await reader.read()
    if (!first) throw new BrokenAnswer('The answer is empty.')
    return { first, reader }
  } catch (error) {
    attempt.mayHaveWritten = answer.isSent && (answer.status === 0 || answer.status === 200)
    attempt.cancellation.throwIfCancelled()
    throw error instanceof AttemptFailed ? error : new AttemptFailed(toFailure(error))
  }
}

const createTimeout = () => new TotalTimeout()

function send(pools: OriginPools, attempt: UpstreamAttempt): StreamedAnswer {
  const { upstream, format, model, body, headers, isPlain, timeoutMs, cancellation } = attempt
  const sent: Record<string, string> = { ...headers, ...callHeaders(upstream, format) }
  if (isPlain) sent['accept'] = plainMediaType
  return pools.stream(upstream.place.origin, {
    method: 'POST',
    path: upstream.place.path + format.pathOf(model),
    headers: sent,
    body: JSON.stringify(body),
    cancellation,
    timeoutMs,
    createTimeout,
    isSilent: isPlain, // nothing of a plain answer arrives until it is complete
  })
}

function refuseOtherBodies(answer: StreamedAnswer, { framing }: UpstreamFormat) {
  if (isOfType(answer.headers, framing.mediaType)) return
  answer.destroy()
  throw new BrokenAnswer('The upstream sent a body of another type.')
}

async function readRefusal(
  answer: StreamedAnswer,
  attempt: UpstreamAttempt,
): Promise<UpstreamFailure> {
  const { format, upstream } = attempt
  const { status, headers } = answer
  answer.endWithin(upstream.idleTimeoutMs) // even if the answer itself was allowed to stay silent for longer
  const json = readJson(withoutSecret(await readStart(answer), upstream))
  return toStatusFailure(status, readComplaint(json, format), {
    retryAfter: headers['retry-after']?.toString(),
    requestId: idOf(headers, json),
  })
}

/** The provider's own id for the call: Anthropic's header, OpenAI's, or a member of the body. */
const idOf = (headers: AnswerHeaders, json: Json): string | undefined =>
  headers['request-id']?.toString() ??
  headers['x-request-id']?.toString() ??
  asText(json['request_id'])

/** Some providers quote the key that they refuse; callers must not see it. */
const withoutSecret = (text: string, { secret }: Upstream) =>
  secret === null ? text : text.replaceAll(secret, '[removed]')

function readComplaint(json: Json, format: UpstreamFormat) {
  try {
    return format.readError(json)
  } catch {
    return null
  }
}

function readJson(text: string): Json {
  try {
    return objectOf(JSON.parse(text))
  } catch {
    return {}
  }
}

/** The start of a body, up to `refusalMaxBytes`. */
async function readStart(answer: StreamedAnswer): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  while (bytes <= refusalMaxBytes && !answer.isRead) {
    const chunk = answer.take()
    if (!chunk) {
      await answer.arrival()
      continue
    }
    chunks.push(chunk)
    bytes += chunk.length
  }
  answer.destroy()
  return Buffer.concat(chunks).toString()
}
