import { connect } from 'node:net'

export type Exchange = {
  text: string
  /** The status lines, in the order they arrived. */
  heads: string[]
  status: number
  elapsedMs: number
}

/** Sends raw bytes and reads until the server closes the connection or sends nothing more. */
export function exchange(
  baseUrl: string,
  bytes: string | Buffer,
  { quietMs = 500, timeoutMs = 120_000 } = {},
): Promise<Exchange> {
  const { hostname, port } = new URL(baseUrl)
  const startedAt = performance.now()
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    let text = ''
    let quiet: NodeJS.Timeout | undefined
    const finish = () => {
      socket.destroy()
      const heads = text.match(/HTTP\/1\.1 \d{3}/g) ?? []
      const elapsedMs = performance.now() - startedAt
      resolve({ text, heads, status: Number(heads[0]?.slice(9)), elapsedMs })
    }
    socket.on('data', (chunk) => {
      text += chunk.toString()
      clearTimeout(quiet)
      quiet = setTimeout(finish, quietMs)
    })
    socket.on('close', finish)
    socket.on('error', finish)
    setTimeout(() => reject(new Error('There was no answer.')), timeoutMs).unref()
  })
}
