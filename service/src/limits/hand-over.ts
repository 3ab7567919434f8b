import { beyond, type BucketCounters } from './buckets.ts'
import type { LastSeen } from './last-seen.ts'
import type { Attempt, Verdict } from './limits.ts'
import type { MemoryCounters } from './memory-counters.ts'
import type { RedisCounters } from './redis-counters.ts'
import { count, type HandOver, type Windows } from './rolling-window.ts'

type Options = { redis: RedisCounters; seen: LastSeen; local: MemoryCounters }

/** Calls go on being let through while we tell of them: so many rounds, then the rest is let be. */
const roundsMax = 5

/**
 * Tells Redis what was let through without it, each call once, however often this is tried; and what it
 * had counted before, in case it has lost that.
 */
export function createHandOver({ redis, seen, local }: Options) {
  const told = new Map<string, Map<string, BucketCounters>>()

  async function tellAll(): Promise<boolean> {
    let hasTold = false
    for (const [organizationId, windows] of local.windows) {
      const news = newsOf(windows, told.get(organizationId))
      if (news.length === 0) continue
      const now = copyOf(windows)
      await redis.absorb(organizationId, news)
      told.set(organizationId, now)
      hasTold = true
    }
    return hasTold
  }

  /** First of all: nothing can be lost any more once a scope has been counted in anew. */
  async function tellKnown() {
    for (const [organizationId, fields] of seen.all()) {
      const handOvers = [...fields].map(([field, known]) => ({ field, counters: nothing, known }))
      await redis.absorb(organizationId, handOvers)
    }
  }

  return {
    tellKnown,
    async run() {
      for (let round = 0; round < roundsMax; round++) if (!(await tellAll())) return
    },
    /** A call that was counted here was counted there as well: nothing is left to be told of it. */
    noteTold(attempt: Attempt, { nowMs }: Verdict) {
      const windows = { counters: told.get(attempt.organizationId) ?? new Map(), leases: new Map() }
      count(windows, attempt, nowMs)
      told.set(attempt.organizationId, windows.counters)
    },
    /** What was counted here is forgotten, so what was told of it is too. */
    reset: () => told.clear(),
  }
}

const nothing: BucketCounters = { minute: [], day: [] }

function newsOf({ counters }: Windows, told: Map<string, BucketCounters> | undefined): HandOver[] {
  return [...counters]
    .map(([field, each]) => ({ field, counters: beyond(each, told?.get(field)), known: null }))
    .filter((each) => each.counters.day.length > 0)
}

const copyOf = ({ counters }: Windows) => new Map(structuredClone([...counters]))
