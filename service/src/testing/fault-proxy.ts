import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

/** How likely each is, for one piece of what the server answers. */
export type Faults = {
  /** It comes late, and so does all that follows. */
  delay: number
  delayMs: readonly [least: number, most: number]
  /** It never comes, nor does anything after it: the connection looks alive and is silent. */
  drop: number
  /** The connection ends instead of it. */
  reset: number
}

const none: Faults = { delay: 0, delayMs: [0, 0], drop: 0, reset: 0 }

/** The same numbers for the same seed (mulberry32). */
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
 * Stands between a client and a server and spoils answers: the server has done the work, the client does
 * not hear of it. A stream stays a stream: nothing overtakes, and after a lost piece nothing arrives.
 */
export async function startFaultProxy({ port, seed }: { port: number; seed: number }) {
  const random = createRandom(seed)
  let faults = none
  const open = new Set<Socket>()
  const silent = new Set<Socket>()
  const met = { connections: 0, delayed: 0, dropped: 0, reset: 0 }

  function spoil(answer: Socket, client: Socket) {
    let sent = Promise.resolve()
    answer.on('data', (piece: Buffer) => {
      if (silent.has(client)) return
      const dice = random()
      if (dice < faults.reset) {
        met.reset++
        client.resetAndDestroy()
        return
      }
      if (dice < faults.reset + faults.drop) {
        met.dropped++
        silent.add(client)
        return
      }
      const isLate = dice < faults.reset + faults.drop + faults.delay
      if (isLate) met.delayed++
      const [least, most] = faults.delayMs
      const lateMs = isLate ? least + random() * (most - least) : 0
      const dueAtMs = performance.now() + lateMs
      sent = sent.then(async () => {
        const waitMs = dueAtMs - performance.now()
        if (waitMs > 0) await sleep(waitMs)
        if (client.writable) client.write(piece)
      })
    })
  }

  // Without a delay of its own: small pieces that wait for each other's acknowledgement lose 40 ms each.
  const server = createServer({ noDelay: true }, (client) => {
    met.connections++
    const answer = connect({ port, host: '127.0.0.1', noDelay: true })
    open.add(client)
    const end = () => {
      open.delete(client)
      silent.delete(client)
      client.destroy()
      answer.destroy()
    }
    for (const socket of [client, answer]) socket.on('error', end).on('close', end)
    client.on('data', (piece: Buffer) => answer.write(piece))
    spoil(answer, client)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `redis://127.0.0.1:${(server.address() as AddressInfo).port}`,
    met,
    /** From now on; what is not given does not happen. A connection that is silent stays so. */
    set: (next: Partial<Faults> = {}) => void (faults = { ...none, ...next }),
    /** Ends the connections that have gone silent, as a network does in the end. */
    endSilent() {
      for (const client of silent) client.resetAndDestroy()
    },
    [Symbol.asyncDispose]: async () => {
      for (const client of open) client.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
