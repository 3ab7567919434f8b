import { renderError } from '@gatehouse/contract/error-body'

import type { Json, OutFrame } from '#inference/answer.ts'
import type { UpstreamComplaint } from '#inference/protocol.ts'
import { ApiError } from '#platform/api-error.ts'

import { objectOf, textOf } from './json-member.ts'

/** The frame that ends a stream in the middle. */
export function failFrame(error: ApiError, requestId: string): OutFrame {
  const { code, type, status, message, param } = error
  const body = renderError.openai({ code, type, status, message, param, requestId, docUrl: null })
  return { event: null, data: body, bytes: null }
}

/** What an upstream says in the body of a refusal; some say it as a bare text, or call it otherwise. */
export function readError(body: Json): UpstreamComplaint | null {
  const error = objectOf(body['error']) ?? body
  const message =
    textOf(error['message']) ?? textOf(error['error']) ?? textOf(error['detail']) ?? ''
  if (message === '') return null
  return { message, type: wordOf(error['type']), code: wordOf(error['code']) }
}

const wordOf = (value: unknown): string | null =>
  typeof value === 'number' ? String(value) : (textOf(value) ?? null)

const overload = /overload|rate.?limit|too.?many|capacity|unavailable|^(429|503|529)$/i
const timeout = /time.?out|timed.?out|^(408|504)$/i

/** A failure that an upstream tells in the middle of its stream. */
export function toStreamFailure(body: Json): ApiError {
  const complaint = readError(body)
  const kinds = [complaint?.type, complaint?.code].filter((kind) => typeof kind === 'string')
  const isOf = (pattern: RegExp) => kinds.some((kind) => pattern.test(kind))
  const message = complaint
    ? `The model provider failed: ${complaint.message}`
    : 'The model provider failed.'
  if (isOf(overload)) return new ApiError('overloaded', message)
  return new ApiError(isOf(timeout) ? 'upstream_timeout' : 'upstream_error', message)
}
