import type { Json, OutFrame } from '#formats/answer.ts'
import type { UpstreamComplaint } from '#formats/format.ts'
import { asObject, asText } from '#formats/json-values.ts'
import { readComplaint, ProviderFailure } from '#formats/provider-failure.ts'
import type { ApiError } from '#platform/api-error.ts'

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

/**
 * The end of an answer that fails. Clients expect `response.created` before `response.failed`, so a response that
 * never started gets both.
 */
export function failResponse(
  error: ApiError,
  { response, sequenceNumber, isNew }: { response: Json; sequenceNumber: number; isNew: boolean },
): OutFrame[] {
  const failed = { ...response, status: 'failed', error: writeError(error) }
  const created = isNew ? [toFrame('response.created', sequenceNumber, { response })] : []
  return [
    ...created,
    toFrame('response.failed', sequenceNumber + created.length, { response: failed }),
  ]
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
