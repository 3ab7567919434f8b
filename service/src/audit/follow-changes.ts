import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import {
  type Change,
  type ChangeRow,
  type Cursor,
  readChanges,
  readHorizon,
} from './change-store.ts'

export type Subscriber = {
  onChange(change: Change): void
  /** Changes may have been missed: caches must be dropped. */
  onGap(): void
  /** A poll is complete: `onChange` was called for every change that its snapshot can see. */
  onPoll?(poll: Poll): void
}

export type Poll = { readonly startedAt: Date; readonly snapshot: string }

export type Follower = {
  /** Polls now instead of after the pause. */
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

/** A process that is further behind than this starts anew instead of reading on. */
const pagesMax = 50

/** The least pause between two polls, however many hints arrive. */
const pollPauseMinMs = 50

/** Changes are kept for a day. A process that has not polled for half of that starts anew. */
const gapMs = 12 * 60 * 60 * 1000

/**
 * Calls the subscribers for every configuration change. The poll is the guarantee; a hint only makes it come
 * earlier.
 *
 * Transactions commit in another order than their rows are numbered, so a reader that remembers the highest
 * number misses rows. The cursor therefore only moves over settled rows, which are older than every running
 * transaction. Rows beyond the cursor are delivered at once too, so that a long transaction does not delay
 * them, and are read again until they settle; `delivered` keeps them from being delivered twice.
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
    const horizon = await readHorizon(db)
    const hasPaused = lastPollAt && startedAt.getTime() - lastPollAt.getTime() > gapMs
    // A horizon before our cursor is that of another server, restored from a dump: its numbers begin anew.
    if (!cursor || hasPaused || BigInt(horizon.xid) < BigInt(cursor.xid)) startAnew(horizon)
    const rows = await readAll(db, cursor ?? horizon, pageRows)
    if (rows.length < pageRows * pagesMax) deliver(rows)
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

  function deliver(rows: readonly ChangeRow[]) {
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
        log.problem('change_poll_failed', error)
      }
      const pauseMs = pollMs * (0.8 + Math.random() * 0.4)
      const signal = AbortSignal.any([stopping.signal, waking.signal])
      await sleep(pollPauseMinMs, undefined, { signal: stopping.signal }).catch(() => undefined)
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

/** Everything after a position, up to `pagesMax` pages. */
async function readAll(db: Db, after: Cursor, pageRows: number): Promise<ChangeRow[]> {
  const rows: ChangeRow[] = []
  let position: Cursor | undefined = after
  while (position && rows.length < pageRows * pagesMax) {
    const page: ChangeRow[] = await readChanges(db, position, pageRows)
    rows.push(...page)
    position = page.length < pageRows ? undefined : page.at(-1)
  }
  return rows
}
