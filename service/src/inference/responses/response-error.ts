import type { Json, OutFrame } from '#inference/answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { complaintOf, ProviderFailure } from '#inference/provider-failure.ts'
import { asObject, asText } from '#inference/untyped.ts'
import type { ApiError } from '#platform/api-error.ts'

/** An upstream's refusal: an object as OpenAI writes it, or flat, as we and others do. */
export function readResponseError(body: Json): UpstreamComplaint | null {
  const error = asObject(body['error'])
  const flat = asText(body['error']) ?? asText(body['message']) ?? asText(body['detail'])
  const complaint = error ? complaintOf(error) : complaintOf(body, flat)
  return complaint.message === '' ? null : complaint
}

/** A frame of this format: the name on its `event:` line is its type. */
export const toFrame = (type: string, sequenceNumber: number, members: Json): OutFrame => ({
  event: type,
  data: { type, sequence_number: sequenceNumber, ...members },
  bytes: null,
})

/**
 * The end of an answer that fails. Clients expect to hear of a response before it fails, so one that
 * never began is created first.
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

/** Codex gives up on these words and tries again on words it does not know (card J). */
const finalWords: readonly string[] = ['invalid_prompt', 'context_length_exceeded']

function writeError({ code, message, cause }: ApiError): { code: string; message: string } {
  if (code === 'policy_blocked' || code === 'moderation_blocked') {
    return { code: 'invalid_prompt', message: `${code}: ${message}` }
  }
  if (overloads.includes(code)) return { code: 'server_is_overloaded', message }
  const word = cause instanceof ProviderFailure ? cause.code : ''
  if (finalWords.includes(word)) return { code: word, message }
  // What was refused once is refused again.
  return { code: code === 'upstream_rejected' ? 'invalid_prompt' : 'server_error', message }
}
