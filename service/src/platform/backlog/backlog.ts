import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import { isLockTimeout } from '#platform/database.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import { isStoreAway } from '#platform/to-api-error.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { type BacklogFormat, createBacklogFiles } from './backlog-files.ts'

/** The codes under which a backlog logs. */
export type BacklogCodes = { unwritten: string; waiting: string; failed: string; caughtUp: string }

type Options<Item> = {
  /** Delivers an item to the database. Delivering it twice must have the effect of once. */
  deliver(item: Item): Promise<unknown>
  format: BacklogFormat<Item>
  codes: BacklogCodes
  files: TrustedFiles
  hasFolder: boolean
  /** False while the folder may be another database's. Until then items only wait. */
  mayDeliver(): boolean
  now: Clock
  log: Log
  onWritten(items: number): void
  /** The files on disk and the items in memory. */
  onWaiting(count: number): void
}

const retryMs = 1000
/** How often to look for files that other processes have left. */
const lookMs = 30_000
/** An outage leaves about as many items as calls were open when it began; more files than this are a fault. */
const filesMax = 10_000
/** Several at a time, so that a file which waits for a locked account does not delay the others. */
const filesAtOnce = 8
/** A process that stops waits this long for what is being delivered; the files stay for the next process. */
const stopMaxMs = 5000

/**
 * Keeps items that cannot be delivered because the database is away. They are written to disk, and delivered once the
 * database is back, by any process that shares the folder.
 */
export function createBacklog<Item extends { id: string }>(options: Options<Item>) {
  const { deliver, mayDeliver, log, codes, onWaiting } = options
  const stopping = new AbortController()
  /** Items that could not be written to disk either. They are lost if this process dies first. */
  const unwritten = new Map<string, Item>()
  let fileCount = 0
  let wake = () => {}
  const onWritten = (items: number) => {
    fileCount++
    options.onWritten(items)
    wake()
  }
  const files = createBacklogFiles({ ...options, onWritten })
  const { failed, caughtUp } = createOutageLog(log, codes)
  const logUnwritten = createLogThrottle(options)

  /** If the database is still away, tries the disk again. */
  async function deliverUnwritten(item: Item) {
    await (mayDeliver() ? deliver(item).catch(() => files.write(item)) : files.write(item))
    unwritten.delete(item.id)
  }
  /** Removes the file when all of it is delivered. Delivering the rest of a file again changes nothing. */
  async function deliverFile(name: string) {
    const outcomes = await Promise.allSettled(((await files.read(name)) ?? []).map(deliver))
    const failure = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failure) throw failure.reason
    await files.remove(name)
  }

  /** True if nothing is left that could be delivered soon. Memory first: the disk may be broken. */
  async function catchUp(): Promise<boolean> {
    const inMemory = [...unwritten.values()].map((each) => () => deliverUnwritten(each))
    const isMemoryDone = await attemptAll(inMemory, stopping, failed)
    const onDisk = (await files.names()).map((name) => () => deliverFile(name))
    const isDiskDone = isMemoryDone && mayDeliver() && (await attemptAll(onDisk, stopping, failed))
    fileCount = (await files.names()).length
    if (isDiskDone) caughtUp()
    return isDiskDone
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      const isDone = await catchUp().catch(failed)
      onWaiting(fileCount + unwritten.size)
      // While the database is away, new files are no reason to look again at once.
      if (!isDone) await pauseFor(retryMs, signal)
      // What is in memory only can be lost: it is tried again soon, whatever it failed with.
      else await Promise.race([pauseFor(unwritten.size === 0 ? lookMs : retryMs, signal), woken])
    }
  }
  const running = run(stopping)

  return {
    /** Writes an item to disk; keeps it in memory if that fails. */
    async keep(item: Item) {
      try {
        await files.write(item)
      } catch (error) {
        logUnwritten(codes.unwritten, error)
        unwritten.set(item.id, item)
        wake()
      }
    },
    /** False while items cannot be written down. */
    canTakeMore: () => unwritten.size === 0 && fileCount < filesMax,
    async stop() {
      stopping.abort()
      await Promise.race([running, sleep(stopMaxMs, undefined, { ref: false })])
    },
  }
}

const pauseFor = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)

/** A few at a time, until the database turns out to be away. False: try again soon. */
async function attemptAll(
  tasks: readonly (() => Promise<void>)[],
  { signal }: AbortController,
  onFailure: (error: unknown) => void,
): Promise<boolean> {
  let isDone = true
  let isAway = false
  const attempt = (task: () => Promise<void>) =>
    task().catch((error: unknown) => {
      onFailure(error)
      // An item that is rejected, or that waits for a lock, says nothing about the others.
      if (isStoreAway(error)) isDone = false
      isAway ||= isStoreAway(error) && !isLockTimeout(error)
    })
  for (let first = 0; first < tasks.length && !isAway && !signal.aborted; first += filesAtOnce) {
    await Promise.all(tasks.slice(first, first + filesAtOnce).map(attempt))
  }
  return isDone
}

/** Logs an outage when it begins and when it ends, and every other failure once. */
function createOutageLog(log: Log, codes: BacklogCodes) {
  const logged = new Set<string>()
  return {
    failed(error: unknown): false {
      const isOther = error instanceof Error && !isStoreAway(error)
      const failure = isOther ? error.message.slice(0, 200) : codes.waiting
      if (!logged.has(failure)) log.problem(isOther ? codes.failed : codes.waiting, error)
      logged.add(failure)
      return false
    },
    caughtUp() {
      if (logged.delete(codes.waiting)) log.event(codes.caughtUp)
    },
  }
}
