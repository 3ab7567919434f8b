import { connect } from 'node:net'

import { bodyOf, findDefect, type Mode, path } from './chat-call.ts'
import { headerSets } from './header-sets.ts'
import type { Target } from './targets/target.ts'

/** Sends one request, checks the answer, and returns the number of its bytes on the wire, headers included. */
export async function probeTarget(target: Target, mode: Mode): Promise<{ bytes: number }> {
  const [headers = {}] = headerSets(target)
  const { origin } = new URL(target.url)
  const body = bodyOf(mode, target.isFresh)
  const answer = await fetch(origin + path, { method: 'POST', headers, body })
  const defect = findDefect(mode, answer.status, await answer.text())
  if (defect) throw new Error(`${target.name} returned ${defect}.`)
  return { bytes: await countBytes(target, mode) }
}

/** wrk counts the bytes that it reads from the socket, so this does too. */
function countBytes(target: Target, mode: Mode): Promise<number> {
  const [headers = {}] = headerSets(target)
  const { hostname, port, host } = new URL(target.url)
  const body = bodyOf(mode, target.isFresh)
  const own = { host, 'content-length': String(body.length), connection: 'keep-alive' }
  const lines = Object.entries({ ...headers, ...own }).map(([name, value]) => `${name}: ${value}`)
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(Number(port), hostname)
    socket.setTimeout(10_000, () => socket.destroy(new Error('The answer is incomplete.')))
    socket.on('error', reject).on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (!isComplete(received)) return
      socket.destroy()
      resolve(received.length)
    })
    socket.write(`POST ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n${body}`)
  })
}

function isComplete(received: string): boolean {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /^content-length: (\d+)/im.exec(received.slice(0, end))?.[1]
  if (length === undefined) return received.endsWith('\r\n0\r\n\r\n')
  return received.length >= end + 4 + Number(length)
}
