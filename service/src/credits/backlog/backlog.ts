import { setTimeout as sleep } from 'node:timers/promises'

import type { HoldQueue } from '#credits/holds/hold-queue.ts'
import type { Settlement } from '#credits/settlement.ts'
import type { Clock } from '#platform/clock.ts'
import { isLockTimeout } from '#platform/database.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { isStoreAway } from '#platform/to-api-error.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { createSettlementFiles } from './settlement-files.ts'

type Options = {
  settle: HoldQueue['settle']
  files: TrustedFiles
  hasFolder: boolean
  now: Clock
  log: Log
  metrics: Metrics
}

const retryMs = 1000
/** How often to look for files that other processes have left. */
const lookMs = 30_000
/** An outage leaves as many settlements as calls were open when it began; more files than this are a fault. */
const filesMax = 10_000
/** Several at a time, so that a file which waits for a locked account does not delay the others. */
const filesAtOnce = 16
/** A process that stops waits this long for running settlements; the files stay for the next process. */
const stopMaxMs = 5000

/**
 * Keeps settlements that fail because the database is away. They are written to disk before the call gets
 * its receipt, and settled once the database is back, by any process that shares the folder: settling twice
 * charges once.
 */
export function createBacklog({ settle, files, hasFolder, now, log, metrics }: Options) {
  const stopping = new AbortController()
  /** Settlements that could not be written to disk either. They are lost if this process dies first. */
  const unwritten = new Map<string, Settlement>()
  let fileCount = 0
  let wake = () => {}
  const onWritten = (settlements: number) => {
    fileCount++
    metrics.settlementsSpooled.inc(settlements)
    wake()
  }
  const settlementFiles = createSettlementFiles({ files, hasFolder, now, onWritten })
  const outageLog = createOutageLog(log)

  /** If the database is still away, tries the disk again. */
  async function settleUnwritten(settlement: Settlement) {
    await settle(settlement).catch(() => settlementFiles.write(settlement))
    unwritten.delete(settlement.id)
  }
  /** Removes the file when all of it is settled. Settling the rest of a file again charges nothing twice. */
  async function settleFile(name: string) {
    const outcomes = await Promise.allSettled(
      ((await settlementFiles.read(name)) ?? []).map(settle),
    )
    const failed = outcomes.find((outcome) => outcome.status === 'rejected')
    if (failed) throw failed.reason
    await settlementFiles.remove(name)
  }

  /** True if nothing is left that could be settled soon. Memory first: the disk may be broken. */
  async function catchUp(): Promise<boolean> {
    const inMemory = [...unwritten.values()].map((each) => () => settleUnwritten(each))
    const isMemoryDone = await attemptAll(inMemory, stopping.signal, outageLog.failed)
    const onDisk = (await settlementFiles.names()).map((name) => () => settleFile(name))
    const isDiskDone = isMemoryDone && (await attemptAll(onDisk, stopping.signal, outageLog.failed))
    fileCount = (await settlementFiles.names()).length
    if (isDiskDone) outageLog.caughtUp()
    return isDiskDone
  }

  async function run({ signal }: AbortController) {
    while (!signal.aborted) {
      const woken = new Promise<void>((resolve) => (wake = resolve))
      const isDone = await catchUp().catch(outageLog.failed)
      metrics.settlementsWaiting.set(fileCount + unwritten.size)
      // While a settlement is in memory only, no new call may begin: it is tried again soon, whatever it failed with.
      const pauseMs = isDone && unwritten.size === 0 ? lookMs : retryMs
      await Promise.race([pauseFor(pauseMs, signal), woken])
    }
  }
  const running = run(stopping)

  return {
    /** Writes a settlement to disk; keeps it in memory if that fails. */
    async keep(settlement: Settlement) {
      try {
        await settlementFiles.write(settlement)
      } catch (error) {
        log.problem('settlement_neither_made_nor_written', error)
        unwritten.set(settlement.id, settlement)
        wake()
      }
    },
    /** False while settlements cannot be written down: no new call may begin then. */
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
  signal: AbortSignal,
  onFailure: (error: unknown) => void,
): Promise<boolean> {
  let isDone = true
  let isAway = false
  const attempt = (task: () => Promise<void>) =>
    task().catch((error: unknown) => {
      onFailure(error)
      // A settlement that is rejected, or whose account is locked, says nothing about the others.
      if (isStoreAway(error)) isDone = false
      isAway ||= isStoreAway(error) && !isLockTimeout(error)
    })
  for (let first = 0; first < tasks.length && !isAway && !signal.aborted; first += filesAtOnce) {
    await Promise.all(tasks.slice(first, first + filesAtOnce).map(attempt))
  }
  return isDone
}

/** Logs an outage when it begins and when it ends, and every other failure once. */
function createOutageLog(log: Log) {
  const logged = new Set<string>()
  const outage = 'settlements_waiting'
  return {
    failed(error: unknown): false {
      const isOther = error instanceof Error && !isStoreAway(error)
      const failure = isOther ? error.message.slice(0, 200) : outage
      if (!logged.has(failure)) log.problem(isOther ? 'settlement_failed' : outage, error)
      logged.add(failure)
      return false
    },
    caughtUp() {
      if (logged.delete(outage)) log.event('settlements_caught_up')
    },
  }
}
