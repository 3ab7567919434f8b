import { setTimeout as sleep } from 'node:timers/promises'

import type { Poller } from './baseline/poller.ts'

/** How long something took, also in polls of the database as a bare poller made them at the same time. */
export type Delay = { ms: number; polls: number }

const giveUpMs = 90_000

/** How long it takes until calls are answered with a status. */
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

export function describeDelays(delays: readonly Delay[]): string {
  const sorted = delays.map(({ ms }) => Math.round(ms)).toSorted((left, right) => left - right)
  const polls = Math.max(...delays.map((delay) => delay.polls)).toFixed(1)
  const middle = sorted[Math.floor(sorted.length / 2)]
  return `median ${middle} ms, slowest ${sorted.at(-1)} ms, at most ${polls} polls`
}
