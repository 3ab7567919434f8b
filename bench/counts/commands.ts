import { connect } from 'node:net'

/** Counts the commands that clients send to Redis by name; what a function does inside Redis is none of them. */
export async function watchCommands(port: number) {
  let counts = new Map<string, number>()
  let rest = ''
  const socket = connect(port, '127.0.0.1')
  socket.setEncoding('latin1').on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\r\n')
    rest = lines.pop() ?? ''
    for (const line of lines) {
      const [, client, name = ''] = /^\+[\d.]+ \[\d+ (\S+)\] "([^"]*)"/.exec(line) ?? []
      if (client !== undefined && client !== 'lua') counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  })
  await new Promise((resolve, reject) => {
    socket.once('connect', resolve).once('error', reject)
  })
  socket.write('MONITOR\r\n')
  return {
    /** The counts since the last call. */
    take: () => {
      const taken = counts
      counts = new Map()
      return taken
    },
    stop: async () => void socket.destroy(),
  }
}
