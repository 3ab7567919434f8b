import type { ServerResponse } from 'node:http'

/** Writes one answer: waits for a slow client, and notices when the client disconnects. */
export function createResponseWriter(response: ServerResponse) {
  let isClosed = false
  let wake: (() => void) | undefined
  const writer = {
    /** Pieces of content written to the socket so far. */
    pieces: 0,
    /** True if the upstream broke the connection, not the client. */
    isBroken: false,
    isClosed: () => isClosed,
    /** Resolves when the buffer has room or the connection has closed. */
    async write(text: string | Buffer) {
      if (isClosed || response.write(text)) return
      await new Promise<void>((resolve) => {
        wake = resolve
        response.once('drain', resolve)
      })
    },
    async pause(ms: number) {
      if (isClosed || ms === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    /** Breaks the connection after everything written so far has been sent. */
    async destroy() {
      if (isClosed) return
      writer.isBroken = true
      await new Promise<void>((resolve) => {
        wake = resolve
        // An empty chunk would end the body, so this waits for the socket itself to flush.
        const socket = response.socket
        if (!socket) return resolve()
        socket.write('', () => resolve())
      })
      response.destroy()
    },
  }
  response.once('close', () => {
    isClosed = true
    wake?.()
  })
  return writer
}

export type ResponseWriter = ReturnType<typeof createResponseWriter>
