import { setTimeout as sleep } from 'node:timers/promises'

import type { Poller } from './poller.ts'

const giveUpMs = 90_000

/** How long something took, and how many polls of a bare poller of the same database took as long at that time. */
export type Delay = { ms: number; polls: number }

/** Sends a request until it is answered with a status, and says how long that took. */
export async function untilStatus(
  status: number,
  send: () => Promise<{ status: number }>,
  poller: Poller,
): Promise<Delay> {
  const startedAt = performance.now()
  while (performance.now() - startedAt < giveUpMs) {
    if ((await send()).status === status) {
      const ms = performance.now() - startedAt
      return { ms, polls: ms / poller.longestPauseMs(startedAt) }
    }
    await sleep(10)
  }
  return { ms: Infinity, polls: Infinity }
}

/** One line for people: the median, the slowest, and the most polls. */
export function describeDelays(delays: readonly Delay[]): string {
  const sorted = delays.map(({ ms }) => Math.round(ms)).toSorted((left, right) => left - right)
  const polls = Math.max(...delays.map((delay) => delay.polls)).toFixed(1)
  const median = sorted[Math.floor(sorted.length / 2)]
  return `median ${median} ms, slowest ${sorted.at(-1)} ms, at most ${polls} polls`
}
