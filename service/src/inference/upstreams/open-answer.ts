import type { Json, Piece } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import { asText, objectOf } from '#formats/json-values.ts'
import type { AnswerBody, OriginAnswer, OriginPools } from '#platform/origin-pools.ts'
import { started } from '#platform/started.ts'

import type { Upstream } from './catalogue.ts'
import { credentialHeaders, settingsOf } from './origins.ts'
import { readPieces } from './read-pieces.ts'
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

/** Calls an upstream once. When this resolves, the first piece of its answer has arrived. */
export async function openAnswer(
  pools: OriginPools,
  attempt: UpstreamAttempt,
): Promise<AsyncIterableIterator<Piece>> {
  const deadline = startDeadline(attempt.signal, attempt.timeoutMs)
  try {
    const answer = await send(pools, attempt, deadline.signal)
    if (answer.status !== 200) throw new AttemptFailed(await readRefusal(answer, attempt))
    refuseOtherBodies(answer, attempt.format)
    return await started(readPieces(answer.body, { ...attempt, onEnd: deadline.end }))
  } catch (error) {
    deadline.end()
    attempt.signal.throwIfAborted()
    throw error instanceof AttemptFailed ? error : new AttemptFailed(toFailure(error))
  }
}

type Deadline = { signal: AbortSignal; end(): void }

/** Aborts when the caller hangs up, or when the whole answer takes too long. */
function startDeadline(caller: AbortSignal, totalMs: number): Deadline {
  const controller = new AbortController()
  const onHangUp = () => controller.abort(caller.reason)
  const timer = setTimeout(() => controller.abort(new TotalTimeout()), totalMs)
  caller.addEventListener('abort', onHangUp, { once: true })
  if (caller.aborted) onHangUp()
  return {
    signal: controller.signal,
    end() {
      clearTimeout(timer)
      caller.removeEventListener('abort', onHangUp)
    },
  }
}

function send(
  pools: OriginPools,
  { upstream, format, model, body, headers }: UpstreamAttempt,
  signal: AbortSignal,
) {
  const { origin, pathname } = new URL(upstream.baseUrl)
  return pools.request(origin, settingsOf(upstream), {
    method: 'POST',
    path: pathname.replace(/\/+$/, '') + format.pathOf(model),
    headers: {
      ...headers,
      ...credentialHeaders(upstream),
      'content-type': 'application/json',
      accept: format.framing.mediaType,
      'accept-encoding': 'identity', // compression would delay and merge frames
      'user-agent': 'gatehouse',
    },
    body: JSON.stringify(body),
    signal,
  })
}

function refuseOtherBodies({ headers, body }: OriginAnswer, { framing }: UpstreamFormat) {
  const type = String(headers['content-type'] ?? '')
  const encoding = String(headers['content-encoding'] ?? 'identity')
  if (type.startsWith(framing.mediaType) && encoding === 'identity') return
  body.destroy()
  throw new BrokenAnswer('The upstream did not stream its answer.')
}

async function readRefusal(
  answer: OriginAnswer,
  attempt: UpstreamAttempt,
): Promise<UpstreamFailure> {
  const { format, upstream } = attempt
  const { status, headers } = answer
  const json = readJson(withoutSecret(await readText(answer.body), upstream))
  return toStatusFailure(status, readComplaint(json, format), {
    retryAfter: headers['retry-after']?.toString(),
    requestId: idOf(headers, json),
  })
}

/** The provider's own id for the call: Anthropic's header, OpenAI's, or a member of the body. */
const idOf = (headers: OriginAnswer['headers'], json: Json): string | undefined =>
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
