import type { FastifyReply } from 'fastify'

import { ClientGone } from '#platform/client-gone.ts'

/** A signal that aborts when the caller hangs up before its answer is sent. */
export function createHangUpSignal(reply: FastifyReply) {
  const hungUp = new AbortController()
  const onClose = () => {
    if (!reply.raw.writableFinished) hungUp.abort(new ClientGone())
  }
  reply.raw.once('close', onClose)
  if (reply.raw.closed) onClose() // while the body was read
  return {
    signal: hungUp.signal,
    [Symbol.dispose]: () => void reply.raw.off('close', onClose),
  }
}
