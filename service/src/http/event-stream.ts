import type { FastifyReply } from 'fastify'

import { ClientGone } from '#platform/client-gone.ts'

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no', // proxies must not buffer the stream
}

/** A client that reads nothing for this long is taken to be gone. */
export const idleWriteMs = 30_000

/** Answers with server-sent events. The reply is hijacked: no later hook and no error handler sees it. */
export function openEventStream(reply: FastifyReply) {
  void reply.hijack()
  const { raw } = reply
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) raw.setHeader(name, value)
  }
  raw.writeHead(200, headers)
  return {
    /** Resolves when more may be written, so that a caller that awaits it buffers no more than the socket does. */
    async write(bytes: Buffer | string): Promise<void> {
      if (raw.destroyed) throw new ClientGone()
      if (!raw.write(bytes)) await drained(raw)
    },
    end() {
      // What is left in the buffer has the same deadline as a plain answer.
      raw.setTimeout(idleWriteMs / 2, () => raw.destroy())
      raw.end()
      // While the server drains, an idle keep-alive connection would only delay its end.
      if (!reply.server.server.listening) raw.once('finish', () => raw.socket?.end())
    },
  }
}
export type EventStream = ReturnType<typeof openEventStream>

function drained(raw: FastifyReply['raw']): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => raw.destroy(), idleWriteMs)
    const stop = () => {
      clearTimeout(timer)
      raw.off('drain', onDrain)
      raw.off('close', onClose)
    }
    const onDrain = () => {
      stop()
      resolve()
    }
    const onClose = () => {
      stop()
      reject(new ClientGone())
    }
    raw.once('drain', onDrain)
    raw.once('close', onClose)
  })
}
