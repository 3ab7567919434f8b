import { renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#inference/answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { complaintOf } from '#inference/provider-failure.ts'
import { asObject, asText } from '#inference/untyped.ts'
import type { ApiError } from '#platform/api-error.ts'

/** The frame that ends a stream in the middle. */
export function errorFrame(error: ApiError, requestId: string): OutFrame {
  const { code, type, status, message, param } = error
  const body = renderError.openai({ code, type, status, message, param, requestId, docUrl: null })
  return { event: null, data: body, bytes: null }
}

/** What an upstream says in the body of a refusal; some say it as a bare text, or call it otherwise. */
export function readChatError(body: Json): UpstreamComplaint | null {
  const error = asObject(body['error']) ?? body
  const message =
    asText(error['message']) ?? asText(error['error']) ?? asText(error['detail']) ?? ''
  if (message === '') return null
  return complaintOf(error, message)
}
