import type { Json, Piece } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import { asText, objectOf } from '#formats/json-values.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { AnswerHeaders } from '#platform/calls/exchange.ts'
import type { StreamedAnswer } from '#platform/calls/streamed-answer.ts'
import type { OriginPools } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'
import { callHeaders } from './origins.ts'
import { PieceReader } from './read-pieces.ts'
import {
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
  /** How long the whole answer may take. */
  timeoutMs: number
  cancellation: Cancellation
}

export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly failure: UpstreamFailure
  constructor(failure: UpstreamFailure) {
    super(failure.error.message, { cause: failure.error })
    this.failure = failure
  }
}

export type OpenAnswer = {
  /** The first piece of the answer. */
  first: Piece
  /** Reads the others. */
  reader: PieceReader
}

const refusalMaxBytes = 64 * 1024

/** Calls an upstream once. When this resolves, the first piece of its answer has arrived. */
export async function openAnswer(
  pools: OriginPools,
  attempt: UpstreamAttempt,
): Promise<OpenAnswer> {
  try {
    const answer = send(pools, attempt)
    await answer.head()
    if (answer.status !== 200) throw new AttemptFailed(await readRefusal(answer, attempt))
    refuseOtherBodies(answer, attempt.format)
    const reader = new PieceReader(answer, attempt)
    const first = await reader.read()
    if (!first) throw new BrokenAnswer('The answer is empty.')
    return { first, reader }
  } catch (error) {
    attempt.cancellation.throwIfCancelled()
    throw error instanceof AttemptFailed ? error : new AttemptFailed(toFailure(error))
  }
}

const createTimeout = () => new TotalTimeout()

function send(pools: OriginPools, attempt: UpstreamAttempt): StreamedAnswer {
  const { upstream, format, model, body, headers, timeoutMs, cancellation } = attempt
  return pools.stream(upstream.place.origin, {
    method: 'POST',
    path: upstream.place.path + format.pathOf(model),
    headers: { ...headers, ...callHeaders(upstream, format) },
    body: JSON.stringify(body),
    cancellation,
    timeoutMs,
    createTimeout,
  })
}

function refuseOtherBodies(answer: StreamedAnswer, { framing }: UpstreamFormat) {
  const type = String(answer.headers['content-type'] ?? '')
  const encoding = String(answer.headers['content-encoding'] ?? 'identity')
  if (type.startsWith(framing.mediaType) && encoding === 'identity') return
  answer.destroy()
  throw new BrokenAnswer('The upstream did not stream its answer.')
}

async function readRefusal(
  answer: StreamedAnswer,
  attempt: UpstreamAttempt,
): Promise<UpstreamFailure> {
  const { format, upstream } = attempt
  const { status, headers } = answer
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
