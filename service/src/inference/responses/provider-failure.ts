import type { ErrorCode } from '@gatehouse/contract/error'

import type { Json } from '#inference/answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { ApiError } from '#platform/api-error.ts'

import { asObject, asText } from './untyped.ts'

/** What the provider itself called its failure; callers of this format may need the word. */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

const overload = /overload|rate_limit|slow_down|capacity|too_many_requests/i
const timeout = /time_?d?_?out/i
/** The request itself is at fault: no other upstream would take it either. */
const rejection = /invalid_prompt|context_length_exceeded|invalid_request/i

/** The error of a failed response, or of an error event, as ours. */
export function providerFailed(error: Json): ApiError {
  const { message, type, code } = complaintOf(error)
  const ours = codeFor(`${code ?? ''} ${type ?? ''}`)
  const sentence =
    message === '' ? 'The model provider failed.' : `The model provider failed: ${message}`
  return new ApiError(ours, sentence, { cause: new ProviderFailure(code ?? '', message) })
}

function codeFor(kind: string): ErrorCode {
  if (overload.test(kind)) return 'overloaded'
  if (timeout.test(kind)) return 'upstream_timeout'
  return rejection.test(kind) ? 'upstream_rejected' : 'upstream_error'
}

const complaintOf = (error: Json): UpstreamComplaint => ({
  message: asText(error['message']) ?? '',
  type: asText(error['type']) ?? null,
  code: asText(error['code']) ?? null,
})

/** An upstream's refusal: an object as OpenAI writes it, or flat, as we and others do. */
export function readError(body: Json): UpstreamComplaint | null {
  const error = asObject(body['error'])
  const flat = asText(body['error']) ?? asText(body['message']) ?? asText(body['detail'])
  const complaint = error ? complaintOf(error) : complaintOf({ ...body, message: flat })
  return complaint.message === '' ? null : complaint
}
