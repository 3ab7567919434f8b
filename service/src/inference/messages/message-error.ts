import { type Failure, renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#inference/answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { ApiError } from '#platform/api-error.ts'

import { isObject, textOf } from './json-value.ts'

/** What a provider says in the body of a refusal, or in an `error` event. */
export function readMessageError(body: Json): UpstreamComplaint | null {
  const { error, message } = body
  const said = isObject(error) ? error['message'] : (error ?? message)
  if (typeof said !== 'string' || said === '') return null
  const details = isObject(error) ? error : {}
  return { message: said, type: textOf(details['type']), code: textOf(details['code']) }
}

const codes: Record<string, 'overloaded' | 'upstream_timeout'> = {
  overloaded_error: 'overloaded',
  rate_limit_error: 'overloaded',
  timeout_error: 'upstream_timeout',
}

/** A provider's failure in the middle of its answer. */
export function toApiError(body: Json): ApiError {
  const complaint = readMessageError(body)
  const code = codes[complaint?.type ?? ''] ?? 'upstream_error'
  const message = complaint?.message ?? 'it gave no reason.'
  return new ApiError(code, `The model provider failed: ${message}`)
}

/** Our own failure in the middle of an answer; the connection closes after it. */
export function errorFrame(error: ApiError, requestId: string): OutFrame {
  const { code, type, status, message, param } = error
  const failure: Failure = { code, type, status, message, param, requestId, docUrl: null }
  return { event: 'error', data: renderError.messages(failure), bytes: null }
}
