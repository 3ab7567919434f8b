import type { ErrorCode } from '@gatehouse/contract/error'

import { ApiError } from '#platform/api-error.ts'

import type { Json } from './answer.ts'
import type { UpstreamComplaint } from './format.ts'
import { asText } from './json-values.ts'

/** The provider's own code for its failure: some clients act on it (see responses/response-error.ts). */
export class ProviderFailure extends Error {
  override readonly name = 'ProviderFailure'
  readonly code: string

  constructor(code: string) {
    super('The provider refused the request in its answer.')
    this.code = code
  }
}

/** Whatever a provider has not said is absent here too. */
export const nothingSaid: UpstreamComplaint = { message: '', type: null, code: null }

type WriteError = (said: UpstreamComplaint) => ConstructorParameters<typeof ApiError>

/**
 * An error in a provider's own words. Providers quote prompts, and what was generated, so the words are judged like an answer
 * before a caller may see them.
 */
export class ProviderError extends ApiError {
  readonly said: UpstreamComplaint
  readonly #write: WriteError

  /** `write` must do without any word that is missing. */
  constructor(said: UpstreamComplaint, write: WriteError) {
    super(...write(said))
    this.said = said
    this.#write = write
  }

  /** The same error with other words, or with fewer. */
  inOtherWords(said: UpstreamComplaint): ProviderError {
    return new ProviderError(said, this.#write)
  }
}

const overload = /overload|rate.?limit|slow.?down|too.?many|capacity|unavailable|^(429|503|529)$/i
const timeout = /timed?.?out|^(408|504)$/i
/** The request itself is at fault: every other upstream would refuse it too. */
const rejection = /invalid_prompt|context_length_exceeded|invalid_request/i

/**
 * The `ApiError` for a failure that a provider reports inside its answer. Only a rejection has the provider's
 * code as its cause: the causes of all other errors are logged, and a provider may quote the prompt.
 */
export function toProviderError(complaint: UpstreamComplaint | null): ApiError {
  const said = complaint ?? nothingSaid
  const ours = codeFor([said.type ?? '', said.code ?? ''])
  const isRejected = ours === 'upstream_rejected'
  return new ProviderError(said, ({ message, code }) => [
    ours,
    message === '' ? 'The model provider failed.' : `The model provider failed: ${message}`,
    isRejected ? { cause: new ProviderFailure(code ?? '') } : {},
  ])
}

function codeFor(words: readonly string[]): ErrorCode {
  const isOf = (pattern: RegExp) => words.some((word) => pattern.test(word))
  if (isOf(overload)) return 'overloaded'
  if (isOf(timeout)) return 'upstream_timeout'
  return isOf(rejection) ? 'upstream_rejected' : 'upstream_error'
}

/** Reads an error object of any format; `message` is passed where it is not a member of that object. */
export const readComplaint = (
  error: Json,
  message = asText(error['message']),
): UpstreamComplaint => {
  const param = asText(error['param'])
  return {
    message: message ?? '',
    type: wordOf(error['type']),
    code: wordOf(error['code']),
    ...(param !== undefined && { param }),
  }
}

/** Some providers use the HTTP status as their code. */
const wordOf = (value: unknown): string | null =>
  typeof value === 'number' ? String(value) : (asText(value) ?? null)
