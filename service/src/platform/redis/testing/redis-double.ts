import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'

import { onTestFinished } from 'vitest'

type Answer = (command: string[], socket: Socket) => string | undefined

/** A server that speaks the protocol of Redis: it answers PING by itself, and other commands as it is told to. */
export async function startRedisDouble(answer: Answer) {
  const commands: string[][] = []
  const writes: number[] = []
  const sockets = new Set<Socket>()
  let accepted = 0
  const server = createServer((socket) => {
    sockets.add(socket)
    accepted++
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined)
    socket.on('data', (chunk) => {
      const received = readCommands(chunk.toString('latin1'))
      writes.push(received.length)
      for (const command of received) {
        commands.push(command)
        const text = command[0] === 'PING' ? '+PONG\r\n' : answer(command, socket)
        if (text !== undefined) socket.write(text, 'latin1')
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `redis://127.0.0.1:${port}`, commands, writes, sockets, accepted: () => accepted }
}

function readCommands(text: string): string[][] {
  const commands: string[][] = []
  for (let rest = text; rest.startsWith('*');) {
    const parts: string[] = []
    const [head = '', count = '0'] = /^\*(\d+)\r\n/.exec(rest) ?? []
    rest = rest.slice(head.length)
    for (let index = 0; index < Number(count); index++) {
      const [start = '', length = '0'] = /^\$(\d+)\r\n/.exec(rest) ?? []
      parts.push(rest.slice(start.length, start.length + Number(length)))
      rest = rest.slice(start.length + Number(length) + 2)
    }
    commands.push(parts)
  }
  return commands
}
