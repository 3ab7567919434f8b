import type { FastifyReply } from 'fastify'

import { Cancellation } from '#platform/calls/cancellation.ts'
import { ClientGone } from '#platform/client-gone.ts'

/**
 * Cancels a call with `ClientGone` when its caller hangs up before the answer is sent, or with the reason of `ending` when this
 * process ends all calls.
 */
export function watchCaller(reply: FastifyReply, ending: Cancellation) {
  const { raw } = reply
  const cancellation = new Cancellation()
  const onClose = () => {
    if (!raw.writableFinished) cancellation.cancel(new ClientGone())
  }
  raw.once('close', onClose)
  if (raw.closed) onClose() // the caller hung up while the body was read
  ending.add(cancellation)
  return {
    cancellation,
    [Symbol.dispose]: () => {
      raw.off('close', onClose)
      ending.remove(cancellation)
    },
  }
}
