import type { FastifyReply } from 'fastify'

import { ClientGone } from '#platform/client-gone.ts'

const headers = {
  'content-type': 'text/event-stream; charset=utf-8',
  'cache-control': 'no-cache',
  'x-accel-buffering': 'no', // proxies must not collect what is meant to arrive piece by piece
}

/** A client that reads nothing for so long is gone, whatever its connection says. */
const idleWriteMs = 30_000

/** Answers with server-sent events. From here on the answer is ours alone: no hook and no handler sees it. */
export function openEventStream(reply: FastifyReply) {
  void reply.hijack()
  const { raw } = reply
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) raw.setHeader(name, value)
  }
  raw.writeHead(200, headers)
  return {
    /** Resolves when more may be written: whoever waits for it holds no more than the socket takes. */
    async write(bytes: Buffer | string): Promise<void> {
      if (raw.destroyed) throw new ClientGone()
      if (!raw.write(bytes)) await drained(raw)
    },
    end() {
      raw.end()
      // While we are leaving, a connection that stays open would only be waited for.
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
