import { once } from 'node:events'
import { createServer } from 'node:net'

// Below the ports that the kernel gives to outgoing connections (32768 and up on Linux): one of those could be taken by
// another test's connection before the program listens.
const lowest = 12_000
const count = 20_000
const maxTries = 100

/** Finds a free port, for programs that cannot choose one themselves and report it. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < maxTries; tries++) {
    const port = lowest + Math.floor(Math.random() * count)
    if (await isFree(port)) return port
  }
  throw new Error(`None of ${maxTries} ports from ${lowest} on was free.`)
}

async function isFree(port: number): Promise<boolean> {
  const server = createServer()
  try {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  } catch {
    return false
  }
  server.close()
  await once(server, 'close')
  return true
}
