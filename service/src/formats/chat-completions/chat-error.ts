import { renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#formats/answer.ts'
import type { UpstreamComplaint } from '#formats/format.ts'
import { asObject, asText } from '#formats/json-values.ts'
import { readComplaint } from '#formats/provider-failure.ts'
import { type ApiError, failureOf } from '#platform/api-error.ts'

/** The frame that ends a stream in the middle. */
export function chatErrorFrame(error: ApiError, requestId: string): OutFrame {
  return { event: null, data: renderError.openai(failureOf(error, requestId)), bytes: null }
}

/** Reads the body of a refusal. Some upstreams send the message as bare text or under another name. */
export function readChatError(body: Json): UpstreamComplaint | null {
  const error = asObject(body['error']) ?? body
  const message =
    asText(error['message']) ?? asText(error['error']) ?? asText(error['detail']) ?? ''
  if (message === '') return null
  return readComplaint(error, message)
}
