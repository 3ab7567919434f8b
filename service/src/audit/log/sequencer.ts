import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { transactNamed } from '#platform/transaction.ts'

import { numberingSettings, shards, tryWriting } from './log-store.ts'
import { type Numbered, sequenceEvents } from './sequence-events.ts'

const waitMinMs = 1000
const waitMaxMs = 60_000

type Deps = {
  db: Db
  now: Clock
  log: Log
  metrics: Pick<Metrics, 'auditEventsNumbered' | 'auditShardsFailing'>
  /** A clock that is never set. */
  nowMs?: () => number
}

type Failing = { waitMs: number; retryAtMs: number }

/**
 * Numbers the events of all shards together, and leaves out those that fail: an event that cannot be written as a record, or a
 * damaged head, holds up the events of its own shard only. This process remembers which shards fail, and tries each of them alone,
 * less and less often.
 */
export function createSequencer({ db, now, log, metrics, nowMs = () => performance.now() }: Deps) {
  const report = createLogThrottle({ log, now })
  const failing = new Map<number, Failing>()

  async function number(some: readonly number[]): Promise<Numbered> {
    const numbered = await sequenceEvents(db, some)
    metrics.auditEventsNumbered.inc(numbered.events)
    return numbered
  }

  function waitWith(shard: number, waitMs: number) {
    failing.set(shard, { waitMs, retryAtMs: nowMs() + waitMs })
  }

  /** Undefined if the shard fails. Throws if the database is away, or takes no changes of the log. */
  async function numberAlone(shard: number): Promise<Numbered | undefined> {
    const known = failing.get(shard)
    try {
      const numbered = await number([shard])
      // Another worker tries it just now, so nothing is known.
      if (known && numbered.isHeld) waitWith(shard, known.waitMs)
      else failing.delete(shard)
      return numbered
    } catch (cause) {
      // Throws if it is not the shard that fails.
      await transactNamed(db, numberingSettings, tryWriting)
      waitWith(shard, known ? Math.min(known.waitMs * 2, waitMaxMs) : waitMinMs)
      const message = `Events of shard ${shard} get no numbers.`
      log.problem('audit_shard_failed', new Error(message, { cause }))
      return undefined
    } finally {
      metrics.auditShardsFailing.set(failing.size)
    }
  }

  /** Finds out which shards made all of them fail. */
  async function numberEachAlone(some: readonly number[], reason: unknown) {
    const numbered: (Numbered | undefined)[] = []
    for (const shard of some) numbered.push(await numberAlone(shard))
    if (!numbered.includes(undefined)) report('audit_sequencing_failed', reason)
    return {
      events: numbered.reduce((sum, each) => sum + (each?.events ?? 0), 0),
      hasMore: numbered.some((each) => each?.hasMore),
    }
  }

  return {
    /** Numbers events of the shards that do not fail. Returns how many, and whether there are more. */
    async numberEvents(): Promise<{ events: number; hasMore: boolean }> {
      const sound = shards.filter((shard) => !failing.has(shard))
      try {
        return await number(sound)
      } catch (error) {
        return numberEachAlone(sound, error)
      }
    },

    /** Tries the shards whose time has come. Apart from the others, which are not to wait for their attempts. */
    async retryShards() {
      const due = [...failing].filter(([, { retryAtMs }]) => retryAtMs <= nowMs())
      for (const [shard] of due) await numberAlone(shard)
    },
  }
}
export type Sequencer = ReturnType<typeof createSequencer>
