import { type Failure, renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#inference/answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { complaintOf } from '#inference/provider-failure.ts'
import { isObject, objectOf } from '#inference/untyped.ts'
import type { ApiError } from '#platform/api-error.ts'

/** What a provider says in the body of a refusal, or in an `error` event. */
export function readMessageError(body: Json): UpstreamComplaint | null {
  const { error, message } = body
  const said = isObject(error) ? error['message'] : (error ?? message)
  if (typeof said !== 'string' || said === '') return null
  return complaintOf(objectOf(error), said)
}

/** Our own failure in the middle of an answer; the connection closes after it. */
export function errorFrame(error: ApiError, requestId: string): OutFrame {
  const { code, type, status, message, param, details } = error
  const failure: Failure = {
    ...{ code, type, status, message, param, requestId, docUrl: null },
    ...(details && { details }),
  }
  return { event: 'error', data: renderError.messages(failure), bytes: null }
}
