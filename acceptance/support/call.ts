import { buildUrl } from '@gatehouse/contract/client'
import { type Endpoint, errorsOf } from '@gatehouse/contract/endpoint'
import { type ErrorCode, errors } from '@gatehouse/contract/error'
import { errorBodies, statusIn } from '@gatehouse/contract/error-body'
import { expect } from 'vitest'

import { expectDescribed } from './description.ts'

export type Sent = {
  credential?: string | undefined
  params?: Record<string, unknown>
  query?: Record<string, unknown>
  body?: unknown
  /** Sent unchanged, instead of `body`. */
  raw?: string | Uint8Array<ArrayBuffer> | ReadableStream
  headers?: Record<string, string>
}

export type Answer = { status: number; headers: Headers; text: string; json: unknown }

/** Only detects a hang; response times are not checked here. */
const answerMaxMs = 60_000

/** Calls an endpoint over TCP and checks what must hold for every answer. */
export async function call(baseUrl: string, endpoint: Endpoint, sent: Sent = {}): Promise<Answer> {
  const { credential, params, query, body, raw, headers } = sent
  const payload = raw ?? (body === undefined ? undefined : JSON.stringify(body))
  const response = await fetch(buildUrl(baseUrl, endpoint.path, params, query), {
    method: endpoint.method,
    headers: {
      ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
      ...(payload !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(payload !== undefined && { body: payload }),
    ...(payload instanceof ReadableStream && { duplex: 'half' }),
    signal: AbortSignal.timeout(answerMaxMs),
  } as RequestInit)
  const text = await response.text()
  const answer = { status: response.status, headers: response.headers, text, json: parse(text) }
  checkAnswer(endpoint, answer)
  // Tests also ask for paths that no operation has.
  if (codeOf(answer) !== 'route_not_found') expectDescribed(endpoint, answer)
  return answer
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Any route can answer with these codes, even if the contract does not list them for it. */
const anywhere: readonly ErrorCode[] = ['route_not_found', 'invalid_request', 'url_too_long']

/** The last body of each endpoint that matched its schema: the long documents are always the same, and slow to compare. */
const matched = new Map<string, string>()

/** Every answer has a request id; a success matches its schema exactly; an error code is one the contract lists. */
function checkAnswer(endpoint: Endpoint, { status, headers, text, json }: Answer) {
  const requestId = headers.get('x-request-id')
  expect(requestId).toMatch(/^req_[0-9a-z]{24}$/)
  expect(headers.get('request-id')).toBe(requestId)
  const isStream = status === 200 && headers.get('content-type')?.startsWith('text/event-stream')
  if (isStream) return
  expect(headers.get('content-type')).toBe('application/json; charset=utf-8')
  if (status === endpoint.successStatus) {
    if (matched.get(endpoint.id) === text) return
    expect(endpoint.response.parse(json)).toEqual(json)
    matched.set(endpoint.id, text)
    return
  }
  expect(errorBodies[endpoint.dialect].parse(json), text).toEqual(json)
  const { code, message, request_id } = readFailure(json)
  // A rejection has the status, the code and the words of the provider.
  if (headers.get('x-gatehouse-error') === 'upstream_rejected') {
    expect([400, 413, 422]).toContain(status)
    expect(errorsOf(endpoint)).toContain('upstream_rejected')
    return
  }
  expect([...errorsOf(endpoint), ...anywhere], text).toContain(code)
  expect(statusIn(endpoint.dialect, errors[code].status)).toBe(status)
  expect(message).toMatch(/\.$/)
  // One sentence, except where it quotes the caller (400, 422) and in the fixed texts of 402 and 429.
  if (![400, 402, 422, 429].includes(status)) expect(message).not.toMatch(/\. [A-Z]/)
  // The body of a replayed refusal has the request id of the first answer; in some dialects it has none.
  if (request_id !== undefined && !headers.has('idempotent-replayed')) {
    expect(request_id).toBe(requestId)
  }
  if (status === 401) expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="/)
}

type Failure = { code: ErrorCode; message: string; request_id?: string | undefined }
type AnyFamily = {
  error?: Failure | string
  code?: ErrorCode
  request_id?: string
  detail?: unknown[]
}

/** Reads an error body of any of the families in docs/specification/errors.md#families. */
function readFailure(json: unknown): Failure {
  const body = json as AnyFamily
  if (body.detail) return { code: 'invalid_parameter', message: 'See detail.' }
  if (typeof body.error === 'string') return { code: body.code!, message: body.error }
  return { request_id: body.request_id, ...body.error! }
}

export const codeOf = ({ json, status }: Answer): string | undefined =>
  status < 400 ? undefined : readFailure(json).code
