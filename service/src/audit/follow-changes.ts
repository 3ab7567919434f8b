import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import {
  type Change,
  type ChangeRow,
  currentHorizon,
  type Cursor,
  readChanges,
} from './change-store.ts'

export type Subscriber = {
  onChange(change: Change): void
  /** Changes may have been missed: whatever is remembered can no longer be trusted. */
  onGap(): void
  /** A poll is complete: every change that its snapshot can see has been told. */
  onPoll?(poll: Poll): void
}

export type Poll = { readonly startedAt: Date; readonly snapshot: string }

export type Follower = {
  /** Polls now instead of at the next turn. */
  wake(): void
  /** When the last successful poll began; undefined before the first. */
  lastPollAt(): Date | undefined
  stop(): Promise<void>
}

type Options = {
  db: Db
  now: Clock
  log: Log
  metrics: Metrics
  subscribers: readonly Subscriber[]
  pollMs?: number
  pageRows?: number
}

/** Whoever is further behind than this forgets everything instead of reading on. */
const pagesMax = 50

/** However many hints arrive, polls keep this distance. */
const pollDistanceMs = 50

/** Rows are kept for a day; whoever slept through half of that starts anew. */
const gapMs = 12 * 60 * 60 * 1000

/**
 * Brings configuration changes to this process. The poll is the guarantee, a hint only makes it early.
 *
 * Transactions commit in another order than they number their rows, so a reader that remembers the
 * highest number misses rows. The cursor therefore only moves over rows that are settled: older than
 * every running transaction. Rows beyond it are delivered at once all the same and read again until
 * they settle, so that one long transaction delays nobody; `delivered` keeps them from counting twice.
 */
export function followChanges(options: Options): Follower {
  const { db, now, log, metrics, subscribers, pollMs = 1000, pageRows = 1000 } = options
  const stopping = new AbortController()
  let waking = new AbortController()
  let cursor: Cursor | undefined
  let delivered = new Set<string>()
  let lastPollAt: Date | undefined

  async function poll() {
    const startedAt = now()
    const horizon = await currentHorizon(db)
    const hasSlept = lastPollAt && startedAt.getTime() - lastPollAt.getTime() > gapMs
    // A horizon behind our cursor is another server's: restored from a dump, its numbers begin anew.
    if (!cursor || hasSlept || BigInt(horizon.xid) < BigInt(cursor.xid)) startAnew(horizon)
    const rows = await readAll(db, cursor ?? horizon, pageRows)
    if (rows.length < pageRows * pagesMax) take(rows)
    else startAnew(horizon)
    for (const { onPoll } of subscribers) onPoll?.({ startedAt, snapshot: horizon.snapshot })
    lastPollAt = startedAt
    metrics.changesPolledAt.set(startedAt.getTime() / 1000)
  }

  function startAnew(horizon: Cursor) {
    cursor = horizon
    delivered = new Set()
    for (const { onGap } of subscribers) onGap()
  }

  function take(rows: readonly ChangeRow[]) {
    for (const row of rows) {
      if (delivered.has(row.seq)) continue
      metrics.changesSeen.inc()
      for (const { onChange } of subscribers) onChange(row)
    }
    cursor = rows.findLast(({ isSettled }) => isSettled) ?? cursor
    const unsettled = rows.filter(({ isSettled }) => !isSettled)
    delivered = new Set(unsettled.map(({ seq }) => seq))
  }

  async function run() {
    while (!stopping.signal.aborted) {
      waking = new AbortController()
      try {
        await poll()
      } catch (error) {
        log.problem('poll for configuration changes', error)
      }
      const pauseMs = pollMs * (0.8 + Math.random() * 0.4)
      const signal = AbortSignal.any([stopping.signal, waking.signal])
      await sleep(pollDistanceMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      await sleep(pauseMs, undefined, { signal }).catch(() => undefined)
    }
  }

  const running = run()
  return {
    wake: () => waking.abort(),
    lastPollAt: () => lastPollAt,
    stop: async () => {
      stopping.abort()
      await running
    },
  }
}

/** Everything after a place, in pages; a bounded number of them. */
async function readAll(db: Db, after: Cursor, pageRows: number): Promise<ChangeRow[]> {
  const rows: ChangeRow[] = []
  let place: Cursor | undefined = after
  while (place && rows.length < pageRows * pagesMax) {
    const page: ChangeRow[] = await readChanges(db, place, pageRows)
    rows.push(...page)
    place = page.length < pageRows ? undefined : page.at(-1)
  }
  return rows
}
