import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** The probability of each fault, per chunk of the server's answers. */
export type Faults = {
  /** The chunk is delayed, and so is everything after it. */
  delay: number
  delayMs: readonly [least: number, most: number]
  /** The chunk and everything after it is lost: the connection stays open and silent. */
  drop: number
  /** The connection is reset instead. */
  reset: number
}

const none: Faults = { delay: 0, delayMs: [0, 0], drop: 0, reset: 0 }

/** A seeded random number generator (mulberry32). */
export function createRandom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d_2b_79_f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

/**
 * A TCP proxy that delays, loses or cuts off answers: the server has done the work, but the client does not
 * get the answer. Chunks are never reordered, and nothing arrives after a lost one.
 */
export async function startFaultProxy({ port, seed }: { port: number; seed: number }) {
  const random = createRandom(seed)
  let faults = none
  const open = new Set<Socket>()
  const silent = new Set<Socket>()
  const met = { connections: 0, delayed: 0, dropped: 0, reset: 0 }

  function forwardAnswers(server: Socket, client: Socket) {
    let sent = Promise.resolve()
    server.on('data', (chunk: Buffer) => {
      if (silent.has(client)) return
      const drawn = random()
      if (drawn < faults.reset) {
        met.reset++
        client.resetAndDestroy()
        return
      }
      if (drawn < faults.reset + faults.drop) {
        met.dropped++
        silent.add(client)
        return
      }
      const isLate = drawn < faults.reset + faults.drop + faults.delay
      if (isLate) met.delayed++
      const [least, most] = faults.delayMs
      const lateMs = isLate ? least + random() * (most - least) : 0
      const dueAtMs = performance.now() + lateMs
      sent = sent.then(async () => {
        const waitMs = dueAtMs - performance.now()
        if (waitMs > 0) await sleep(waitMs)
        if (client.writable) client.write(chunk)
      })
    })
  }

  // Without noDelay, small chunks that wait for acknowledgements would be delayed by 40 ms each.
  const proxy = createServer({ noDelay: true }, (client) => {
    met.connections++
    const server = connect({ port, host: '127.0.0.1', noDelay: true })
    open.add(client)
    const end = () => {
      open.delete(client)
      silent.delete(client)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) socket.on('error', end).on('close', end)
    client.on('data', (chunk: Buffer) => server.write(chunk))
    forwardAnswers(server, client)
  }).listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  return {
    url: `redis://127.0.0.1:${(proxy.address() as AddressInfo).port}`,
    /** How often each fault has happened. */
    met,
    /** Replaces the faults from now on; those left out are switched off. A silent connection stays silent. */
    set: (next: Partial<Faults> = {}) => void (faults = { ...none, ...next }),
    /** Resets the connections that have become silent, as a network does in the end. */
    endSilent() {
      for (const client of silent) client.resetAndDestroy()
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of open) client.destroy()
      proxy.close()
      await once(proxy, 'close')
    },
  }
}
