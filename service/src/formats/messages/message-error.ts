import { renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#formats/answer.ts'
import type { UpstreamComplaint } from '#formats/format.ts'
import { isObject, objectOf } from '#formats/json-values.ts'
import { readComplaint } from '#formats/provider-failure.ts'
import { type ApiError, failureOf } from '#platform/api-error.ts'

/** Reads the body of a refusal, or an `error` event. */
export function readMessageError(body: Json): UpstreamComplaint | null {
  const { error, message } = body
  const text = isObject(error) ? error['message'] : (error ?? message)
  if (typeof text !== 'string' || text === '') return null
  return readComplaint(objectOf(error), text)
}

/** The last frame of an answer that fails in the middle. */
export function messageErrorFrame(error: ApiError, requestId: string): OutFrame {
  return { event: 'error', data: renderError.messages(failureOf(error, requestId)), bytes: null }
}
