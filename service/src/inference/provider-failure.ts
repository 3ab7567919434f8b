import type { ErrorCode } from '@gatehouse/contract/error'

import { ApiError } from '#platform/api-error.ts'

import type { Json } from './answer.ts'
import type { UpstreamComplaint } from './protocol.ts'
import { asText } from './untyped.ts'

/** What the provider itself called its failure: some callers act on that word (see responses/). */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly code: string

  constructor(code: string) {
    super('The provider refused the request in its answer.')
    this.code = code
  }
}

const overload = /overload|rate.?limit|slow.?down|too.?many|capacity|unavailable|^(429|503|529)$/i
const timeout = /timed?.?out|^(408|504)$/i
/** The request itself is at fault: no other upstream would take it either. */
const rejection = /invalid_prompt|context_length_exceeded|invalid_request/i

/**
 * A failure that a provider tells in the middle of its answer, as ours. Only a rejection has the word as its
 * cause, because the causes of all other failures are logged and a provider may quote the prompt.
 */
export function providerFailed(complaint: UpstreamComplaint | null): ApiError {
  const { message = '', type = null, code = null } = complaint ?? {}
  const sentence =
    message === '' ? 'The model provider failed.' : `The model provider failed: ${message}`
  const ours = codeFor([type ?? '', code ?? ''])
  const isRejected = ours === 'upstream_rejected'
  return new ApiError(ours, sentence, isRejected ? { cause: new ProviderFailure(code ?? '') } : {})
}

function codeFor(words: readonly string[]): ErrorCode {
  const isOf = (pattern: RegExp) => words.some((word) => pattern.test(word))
  if (isOf(overload)) return 'overloaded'
  if (isOf(timeout)) return 'upstream_timeout'
  return isOf(rejection) ? 'upstream_rejected' : 'upstream_error'
}

/** An error object as all three formats have it; `message` where it stands elsewhere. */
export const complaintOf = (
  error: Json,
  message = asText(error['message']),
): UpstreamComplaint => ({
  message: message ?? '',
  type: wordOf(error['type']),
  code: wordOf(error['code']),
})

/** Some providers give the status as their code. */
const wordOf = (value: unknown): string | null =>
  typeof value === 'number' ? String(value) : (asText(value) ?? null)
