import type { OutgoingHttpHeaders } from 'node:http'

import type { FastifyReply } from 'fastify'

import { startDeadline } from '#platform/calls/timer-wheel.ts'
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
  // All at once: headers that are set one by one take Node much longer.
  const prepared = reply.getHeaders() as OutgoingHttpHeaders
  raw.writeHead(200, { ...prepared, ...headers })
  return {
    /**
     * Returns undefined if more may be written at once, otherwise a promise for when it may. A caller that awaits it buffers no
     * more than the socket does.
     */
    write(bytes: Buffer | string): Promise<void> | undefined {
      if (raw.destroyed) throw new ClientGone()
      return raw.write(bytes) ? undefined : drained(raw)
    },
    end() {
      raw.end() // the deadline of every answer also covers what is still buffered
      // While the server drains, an idle keep-alive connection would only delay its end.
      if (!reply.server.server.listening) raw.once('finish', () => raw.socket?.end())
    },
  }
}
export type EventStream = ReturnType<typeof openEventStream>

function drained(raw: FastifyReply['raw']): Promise<void> {
  return new Promise((resolve, reject) => {
    const deadline = startDeadline(idleWriteMs, { onDue: () => void raw.destroy() })
    const stop = () => {
      deadline.stop()
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
