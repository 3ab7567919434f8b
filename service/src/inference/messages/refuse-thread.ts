import type { Json } from '#inference/answer.ts'
import { ApiError } from '#platform/api-error.ts'

const message =
  "'body.thread' is not supported: nothing is kept between calls, so send the whole conversation."

/**
 * Conversations that a provider keeps are refused, because only what is sent can be judged and counted. The
 * details are the provider's own: its clients know them and go on without a thread.
 */
export function refuseThread({ thread }: Json) {
  if (thread === undefined || thread === null) return
  throw new ApiError('unsupported_parameter', message, {
    param: 'body.thread',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  })
}
