import { renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#formats/answer.ts'
import type { UpstreamComplaint } from '#formats/format.ts'
import { asObject, asText } from '#formats/json-values.ts'
import { readComplaint, ProviderFailure } from '#formats/provider-failure.ts'
import { type ApiError, failureOf } from '#platform/api-error.ts'

/** Reads the body of a refusal: an error object as OpenAI sends it, or a flat body as other servers do. */
export function readResponseError(body: Json): UpstreamComplaint | null {
  const error = asObject(body['error'])
  const flat = asText(body['error']) ?? asText(body['message']) ?? asText(body['detail'])
  const complaint = error ? readComplaint(error) : readComplaint(body, flat)
  return complaint.message === '' ? null : complaint
}

/** A frame of this format: the name on its `event:` line is its type. */
export const toFrame = (type: string, sequenceNumber: number, members: Json): OutFrame => ({
  event: type,
  data: { type, sequence_number: sequenceNumber, ...members },
  bytes: null,
})

type Failing = {
  response: Json
  sequenceNumber: number
  isNew: boolean
  hasErrorEvent: boolean | undefined
}

/**
 * The end of an answer that fails. Clients expect `response.created` before `response.failed`, so a response that
 * never started gets both. OpenAI's own clients throw at `error`, and stop reading there.
 */
export function failResponse(error: ApiError, failing: Failing): OutFrame[] {
  const { response, sequenceNumber, isNew, hasErrorEvent } = failing
  const failed = { ...response, status: 'failed', error: writeError(error) }
  const frames: [type: string, members: Json][] = [
    ...(isNew ? [['response.created', { response }] as [string, Json]] : []),
    ...(hasErrorEvent ? [['error', writeErrorEvent(error)] as [string, Json]] : []),
    ['response.failed', { response: failed }],
  ]
  return frames.map(([type, members], index) => toFrame(type, sequenceNumber + index, members))
}

/** The documented event is flat; the clients prefer a nested error, the only place for its type. */
function writeErrorEvent(apiError: ApiError): Json {
  const { error } = renderError.openai(failureOf(apiError, ''))
  const { message, param } = error
  // Clients match on the provider's own code.
  const { cause } = apiError
  const code = cause instanceof ProviderFailure && cause.code !== '' ? cause.code : error.code
  return { code, message, param, error: { ...error, code } }
}

const overloads: readonly string[] = [
  'overloaded',
  'policy_evaluation_unavailable',
  'upstream_timeout',
]

/** Codex gives up on these codes and retries on codes it does not know. */
const finalCodes: readonly string[] = ['invalid_prompt', 'context_length_exceeded']

function writeError({ code, message, cause }: ApiError): { code: string; message: string } {
  if (code === 'policy_blocked' || code === 'moderation_blocked') {
    return { code: 'invalid_prompt', message: `${code}: ${message}` }
  }
  if (overloads.includes(code)) return { code: 'server_is_overloaded', message }
  const providerCode = cause instanceof ProviderFailure ? cause.code : ''
  if (finalCodes.includes(providerCode)) return { code: providerCode, message }
  // A retry of a rejected request would be rejected again.
  return { code: code === 'upstream_rejected' ? 'invalid_prompt' : 'server_error', message }
}
