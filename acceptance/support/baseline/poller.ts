import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

/**
 * Polls as a process of the service does, and measures the longest time between two successes. Deadlines that depend on
 * polling are checked as multiples of it.
 */
export function startPoller(everyMs: number, work: () => Promise<unknown>) {
  const startedAt = performance.now()
  const successes: number[] = [startedAt]
  let isOver = false
  const run = async () => {
    while (!isOver) {
      await work().then(
        () => successes.push(performance.now()),
        () => undefined,
      )
      await sleep(everyMs)
    }
  }
  const running = run()
  return {
    /** Considers the pauses that end after `since`, a `performance.now()` timestamp. */
    longestPauseMs(since = startedAt): number {
      const times = [...successes, performance.now()]
      const pauses = times.slice(1).flatMap((at, index) => (at < since ? [] : at - times[index]!))
      return Math.max(everyMs, ...pauses)
    },
    stop: async () => {
      isOver = true
      await running
    },
  }
}
export type Poller = ReturnType<typeof startPoller>

/** Polls PostgreSQL once a second, as processes of the service do for changes. */
export async function startDatabasePoller(databaseUrl: string): Promise<Poller> {
  const client = new pg.Client({ connectionString: databaseUrl })
  client.on('error', () => undefined)
  await client.connect()
  const poller = startPoller(1000, () => client.query('select 1'))
  return {
    ...poller,
    stop: async () => {
      await poller.stop()
      await client.end()
    },
  }
}
