import type { Json } from '#formats/answer.ts'
import { ApiError } from '#platform/api-error.ts'

const message =
  "'body.thread' is not supported: nothing is kept between calls, so send the whole conversation."

/**
 * Refuses conversations that the provider stores, because only what is sent can be judged and counted. The
 * details are those of the provider: its clients recognise them and continue without a thread.
 */
export function refuseThread({ thread }: Json) {
  if (thread === undefined || thread === null) return
  throw new ApiError('unsupported_parameter', message, {
    param: 'body.thread',
    details: { error_code: 'thread_unsupported_request', unsupported: ['thread'] },
  })
}
