import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { isStoreAway } from '#platform/to-api-error.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { CreditStore, Settlement } from './credit-store.ts'
import { createSettlementFiles } from './settlement-files.ts'
import { isLockTimeout } from './waiting-lines.ts'

type Options = {
  settle: CreditStore['settle']
  files: TrustedFiles
  hasFolder: boolean
  now: Clock
  log: Log
  metrics: Metrics
}

/** How long to wait before the next attempt, and between two looks for what other processes left. */
const retryMs = 1000
const lookMs = 30_000
/** Only calls that were under way when the database went can end here: this many are no outage but a fault. */
const filesMax = 10_000
/** Files that are settled side by side: one that has to wait for a lock does not keep the others waiting. */
const atOnce = 16
/** How long a process that stops waits for what it is doing here; the rest stays for the next one. */
const stopMaxMs = 5000

/**
 * Settlements that the database could not take. They are written to disk before their calls are told that
 * all is well, and settled when the database is back, by whichever process of the same folder comes first:
 * settling twice charges once.
 */
export function createBacklog({ settle, files, hasFolder, now, log, metrics }: Options) {
  const stopping = new AbortController()
  /** Those that even the disk did not take: only a process that dies before the database is back loses them. */
  const unwritten = new Map<string, Settlement>()
  let fileCount = 0
  let wake = () => {}
  const onWritten = (settlements: number) => {
    fileCount++
    metrics.settlementsSpooled.inc(settlements)
    wake()
  }
  const written = createSettlementFiles({ files, hasFolder, now, onWritten })
  const complain = createComplaints(log)

  /** Where the database does not take it, the disk may by now. */
  async function settleUnwritten(settlement: Settlement) {
    await settle(settlement).catch(() => written.write(settlement))
    unwritten.delete(settlement.id)
  }
  /** It stays until the database has taken all of it: what it has taken already it takes again for nothing. */
  async function settleFile(name: string) {
    const outcomes = await Promise.allSettled(((await written.read(name)) ?? []).map(settle))
    const refused = outcomes.find((outcome) => outcome.status === 'rejected')
    if (refused) throw refused.reason
    await written.remove(name)
  }

  /** True when nothing is left that could be settled. Memory comes first: the disk may be what is broken. */
  async function catchUp(): Promise<boolean> {
    const inMemory = [...unwritten.values()].map((each) => () => settleUnwritten(each))
    const isMemoryDone = await attemptAll(inMemory, stopping.signal, complain.about)
    const onDisk = (await written.names()).map((name) => () => settleFile(name))
    const isDiskDone = isMemoryDone && (await attemptAll(onDisk, stopping.signal, complain.about))
    fileCount = (await written.names()).length
    if (isDiskDone) complain.noMore()
    return isDiskDone
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      const isDone = await catchUp().catch(complain.about)
      metrics.settlementsWaiting.set(fileCount + unwritten.size)
      await Promise.race([pauseFor(isDone ? lookMs : retryMs, signal), woken])
    }
  }
  const running = run(stopping)

  return {
    /** Resolves when the settlement survives this process, or when nothing but memory takes it. */
    async keep(settlement: Settlement) {
      try {
        await written.write(settlement)
      } catch (error) {
        log.problem('a settlement can neither be made nor written down', error)
        unwritten.set(settlement.id, settlement)
        wake()
      }
    },
    /** Nothing new is begun while what has ended cannot be written down. */
    canTakeMore: () => unwritten.size === 0 && fileCount < filesMax,
    async stop() {
      stopping.abort()
      await Promise.race([running, sleep(stopMaxMs, undefined, { ref: false })])
    },
  }
}

const pauseFor = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)

/** A few at a time, until it is plain that there is nobody to take them. False: try again soon. */
async function attemptAll(
  tasks: readonly (() => Promise<void>)[],
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): Promise<boolean> {
  let isDone = true
  let isAway = false
  const attempt = (task: () => Promise<void>) =>
    task().catch((error: unknown) => {
      onFailure(error)
      // What is refused for its own sake, or whose account is locked, says nothing about the others.
      if (isStoreAway(error)) isDone = false
      isAway ||= isStoreAway(error) && !isLockTimeout(error)
    })
  for (let first = 0; first < tasks.length && !isAway && !signal.aborted; first += atOnce) {
    await Promise.all(tasks.slice(first, first + atOnce).map(attempt))
  }
  return isDone
}

/** An outage is told when it begins and when it ends, and whatever else is wrong once. */
function createComplaints(log: Log) {
  const told = new Set<string>()
  return {
    about(error: unknown): false {
      const isOwn = error instanceof Error && !isStoreAway(error)
      const what = isOwn ? error.message.slice(0, 200) : 'settlements wait'
      if (!told.has(what)) log.problem(what, error)
      told.add(what)
      return false
    },
    noMore() {
      if (told.delete('settlements wait')) log.event('settlements_caught_up')
    },
  }
}
