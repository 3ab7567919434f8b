import { z } from 'zod'

import type { Endpoint, InputOf } from './endpoint.ts'
import {
  defaultRetry,
  isConnectionFailure,
  isRetryable,
  readRetryAfter,
  type RetrySettings,
  waitBeforeRetry,
} from './retry.ts'

export type ClientOptions = {
  baseUrl: string
  credential?: string
  /** How long one attempt may take. */
  timeoutMs?: number
  fetch?: typeof fetch
  /** Which of `defaultRetry` to change. */
  retry?: Partial<RetrySettings>
  wait?: (ms: number) => Promise<unknown>
  random?: () => number
}

/** The service answered with an error; `code` is one of docs/errors.md. */
export class CallFailed extends Error {
  readonly status: number
  readonly code: string
  readonly param: string | null
  readonly requestId: string | null
  /** How long the service asked to wait before a repetition; null: it did not say. */
  readonly retryAfterMs: number | null
  /** An earlier attempt of the same call had no answer, or 503: what this one asked for may have been done. */
  hadUnknownOutcome = false

  constructor({ status, headers }: Pick<Response, 'status' | 'headers'>, body: unknown) {
    const parsed = ErrorBody.safeParse(body)
    const error = parsed.success ? parsed.data : undefined
    super(error?.message ?? `The service answered ${status} without an explanation.`)
    this.name = 'CallFailed'
    this.status = status
    this.code = error?.code ?? 'unknown'
    this.param = error?.param ?? null
    this.requestId = headers.get('x-request-id')
    this.retryAfterMs = readRetryAfter(headers.get('retry-after'), Date.now())
  }
}

/** The first violated rule of a schema, as a count of tokens reports it. */
const Violation = z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string() })

const Explanation = z.object({
  code: z.string().nullish(),
  message: z.string(),
  param: z.string().nullish(),
})

/** The members that the client reads, in the bodies of all families of endpoints; a newer service may send more. */
const ErrorBody = z.union([
  z.object({ error: Explanation }).transform(({ error }) => error),
  z
    .object({ error: z.string(), code: z.string() })
    .transform(({ error, code }) => ({ message: error, code, param: null })),
  z
    .object({ detail: z.tuple([Violation]).rest(z.unknown()) })
    .transform(({ detail: [{ loc, msg }] }) => ({
      message: `${loc.join('.')}: ${msg}.`,
      code: 'invalid_parameter',
      param: loc.join('.'),
    })),
])

/**
 * A client whose calls are typed by the schemas of the endpoints. Unknown members in answers are accepted. A call that
 * cannot have a second effect is repeated when the service is busy or the connection fails
 * (docs/specification/errors.md#retry-headers).
 */
export function createClient(options: ClientOptions) {
  return {
    async call<E extends Endpoint>(
      endpoint: E,
      input: InputOf<E>,
      { idempotencyKey }: { idempotencyKey?: string } = {},
    ): Promise<z.output<E['response']>> {
      const send = (timeoutMs: number) =>
        callOnce(options, { endpoint, input, idempotencyKey, timeoutMs })
      // Other endpoints would ignore the key and do twice what they are asked for.
      const isOnce = endpoint.isIdempotent && idempotencyKey !== undefined
      const canRepeat = endpoint.method === 'GET' || isOnce
      const answer = canRepeat
        ? await retrying(send, options)
        : await send(options.timeoutMs ?? defaultTimeoutMs)
      return answer as z.output<E['response']>
    },
  }
}

const defaultTimeoutMs = 30_000

type Attempt = {
  endpoint: Endpoint
  input: object
  idempotencyKey: string | undefined
  timeoutMs: number
}

async function callOnce(options: ClientOptions, attempt: Attempt): Promise<unknown> {
  const { baseUrl, credential, fetch: send = fetch } = options
  const { endpoint, idempotencyKey, timeoutMs } = attempt
  const { params, query, headers, body } = attempt.input as Record<string, Record<string, unknown>>
  const response = await send(buildUrl(baseUrl, endpoint.path, params, query), {
    method: endpoint.method,
    headers: {
      ...headersFrom(headers),
      ...(credential && { authorization: `Bearer ${credential}` }),
      ...(body && { 'content-type': 'application/json' }),
      ...(idempotencyKey && { 'idempotency-key': idempotencyKey }),
    },
    ...(body && { body: JSON.stringify(body) }),
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  })
  if (!response.ok) {
    const body: unknown = await response.json().catch(() => undefined)
    throw new CallFailed(response, body)
  }
  // Throws for an answer that is cut off or not JSON: the outcome of the call is unknown then.
  return response.json()
}

const headersFrom = (headers: Record<string, unknown> = {}) =>
  Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value]] : [],
    ),
  )

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

/** Sends until an attempt succeeds, a repetition would not help, or the attempts or the time are used up. */
async function retrying(send: (timeoutMs: number) => Promise<unknown>, options: ClientOptions) {
  const { timeoutMs = defaultTimeoutMs, wait = sleep, random = Math.random } = options
  const settings = { ...defaultRetry, ...options.retry }
  const endMs = performance.now() + settings.totalMs
  let attemptMs = Math.min(timeoutMs, settings.totalMs)
  let hadUnknownOutcome = false
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(attemptMs)
    } catch (error) {
      if (error instanceof CallFailed) error.hadUnknownOutcome = hadUnknownOutcome
      hadUnknownOutcome ||= !(error instanceof CallFailed) || error.status === 503
      if (attempt >= settings.attemptsMax || !mayPass(error)) throw error
      const retryAfterMs = error instanceof CallFailed ? error.retryAfterMs : null
      const waitMs = waitBeforeRetry({ attempt, retryAfterMs }, settings, random())
      if (performance.now() + waitMs >= endMs) throw error
      await wait(waitMs)
      attemptMs = Math.max(1, Math.ceil(Math.min(timeoutMs, endMs - performance.now())))
    }
  }
}

const mayPass = (error: unknown) =>
  error instanceof CallFailed ? isRetryable(error.status, error.code) : isConnectionFailure(error)

/** The URL of a call. An id is encoded, so that it cannot change the path. */
export function buildUrl(
  baseUrl: string,
  path: string,
  params: Record<string, unknown> = {},
  query: Record<string, unknown> = {},
): string {
  const filled = path.replaceAll(/:(\w+)/g, (_, name: string) => segment(params[name]))
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  const search = new URLSearchParams(
    Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
  ).toString()
  return `${baseUrl.replace(/\/+$/, '')}${filled}${search && `?${search}`}`
}

/** `.` and `..` would change the path even when encoded, and an empty id would name the list. Versions are numbers. */
function segment(id: unknown): string {
  if (Number.isSafeInteger(id)) return String(id)
  if (typeof id !== 'string' || /^\.{0,2}$/.test(id))
    throw new Error("An id in the path is missing, or is '.' or '..'.")
  return encodeURIComponent(id)
}
