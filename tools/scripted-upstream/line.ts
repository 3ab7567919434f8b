import type { ServerResponse } from 'node:http'

/** One answer on its way: it waits for a slow reader and notices one who hangs up. */
export function openLine(response: ServerResponse) {
  let isGone = false
  let wake: (() => void) | undefined
  const line = {
    /** Pieces of content handed to the socket so far. */
    pieces: 0,
    /** Broken off by us, not by the reader. */
    isBroken: false,
    isGone: () => isGone,
    /** Resolves when there is room for more, or nobody left to write to. */
    async write(text: string | Buffer) {
      if (isGone || response.write(text)) return
      await new Promise<void>((resolve) => {
        wake = resolve
        response.once('drain', resolve)
      })
    },
    async pause(ms: number) {
      if (isGone || ms === 0) return
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, ms)
        wake = () => {
          clearTimeout(timer)
          resolve()
        }
      })
    },
    /** Breaks the connection, but only after what was written has left. */
    async destroy() {
      if (isGone) return
      line.isBroken = true
      await new Promise<void>((resolve) => {
        wake = resolve
        // An empty chunk would end the body: the socket itself says when its buffer is empty.
        const socket = response.socket
        if (!socket) return resolve()
        socket.write('', () => resolve())
      })
      response.destroy()
    },
  }
  response.once('close', () => {
    isGone = true
    wake?.()
  })
  return line
}

export type Line = ReturnType<typeof openLine>
