import { setTimeout as sleep } from 'node:timers/promises'

import { createBacklog } from '#platform/backlog/backlog.ts'
import { createBatched } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { isStoreAway } from '#platform/to-api-error.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { readEvents, writeEvents } from './event-record.ts'
import { insertEvents } from './event-store.ts'
import type { Event } from './event.ts'

type Options = {
  db: Db
  files: TrustedFiles
  hasFolder: boolean
  mayDeliver(): boolean
  now: Clock
  log: Log
  metrics: Metrics
}

/** What the names of files with events start with. */
export const eventsPrefix = 'events-'
const batchMax = 500
const waitingMax = 5000
/** A caller waits this long for its event to be committed; then it goes to disk. */
const insertMaxMs = 1000
/** A process that stops waits this long for events that are being written. */
const stopMaxMs = 5000

/**
 * Writes the events of calls that have no settlement, such as refused ones. An event is in the database or on disk before
 * its caller is answered. Events that arrive while a statement runs go into the next one together.
 */
export function createEventWriter({ db, metrics, ...options }: Options) {
  const insert = createBatched({
    sizeMax: batchMax,
    waitingMax,
    run: (events: readonly Event[]) => insertOrExplain(db, events),
  })
  const deliver = async (event: Event) => {
    const failure = await insert(event)
    if (failure !== null) throw failure
  }
  const backlog = createBacklog({
    ...options,
    deliver,
    format: {
      prefixes: [eventsPrefix],
      prefixOf: () => eventsPrefix,
      write: writeEvents,
      read: readEvents,
    },
    codes: {
      unwritten: 'event_neither_committed_nor_written',
      waiting: 'events_waiting',
      failed: 'event_failed',
      caughtUp: 'events_caught_up',
    },
    onWritten: (events) => metrics.eventsSpooled.inc(events),
    onWaiting: (count) => metrics.eventsWaiting.set(count),
  })
  const late = () => new Error('the event takes too long')
  const writing = new Set<Promise<void>>()

  return {
    /** Never throws: the call is over. */
    async write(event: Event): Promise<void> {
      const written = within(insertMaxMs, late, () => deliver(event)).catch(() =>
        backlog.keep(event),
      )
      writing.add(written)
      await written
      writing.delete(written)
    },
    /** False while events can be written neither to the database nor to disk: no call may begin then. */
    canTakeMore: backlog.canTakeMore,
    /** To be called after the last call was answered or cut off. */
    async stop() {
      await Promise.race([Promise.all(writing), sleep(stopMaxMs, undefined, { ref: false })])
      await backlog.stop()
    },
  }
}
export type EventWriter = ReturnType<typeof createEventWriter>

/** For each event null, or why the database refuses it: one such event must not keep the others from being written. */
async function insertOrExplain(db: Db, events: readonly Event[]): Promise<unknown[]> {
  try {
    await insertEvents(db, events)
    return events.map(() => null)
  } catch (error) {
    if (isStoreAway(error) || events.length === 1) return events.map(() => error)
    return (await Promise.all(events.map((event) => insertOrExplain(db, [event])))).flat()
  }
}
