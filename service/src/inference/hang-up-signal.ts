import type { FastifyReply } from 'fastify'

import { ClientGone } from '#platform/client-gone.ts'

/**
 * A signal that aborts when the caller hangs up before its answer is sent, with `ClientGone`, or with `ending`, when
 * this process ends all calls.
 */
export function createHangUpSignal(reply: FastifyReply, ending: AbortSignal) {
  const hungUp = new AbortController()
  const onClose = () => {
    if (!reply.raw.writableFinished) hungUp.abort(new ClientGone())
  }
  const onEnding = () => hungUp.abort(ending.reason)
  reply.raw.once('close', onClose)
  ending.addEventListener('abort', onEnding)
  if (reply.raw.closed) onClose() // while the body was read
  if (ending.aborted) onEnding()
  return {
    signal: hungUp.signal,
    [Symbol.dispose]: () => {
      reply.raw.off('close', onClose)
      ending.removeEventListener('abort', onEnding)
    },
  }
}
