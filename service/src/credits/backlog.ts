import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { CreditStore, Settlement } from './credit-store.ts'
import { createSettlementFiles, DamagedFile } from './settlement-files.ts'

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
/** The database is away then. A single settlement that it refuses must not keep back the others. */
const failuresMax = 3

/**
 * Settlements that the database could not take. They are written to disk before their calls are told that
 * all is well, and settled when the database is back, by whichever process of the same folder comes first:
 * settling twice charges once.
 */
export function createBacklog({ settle, files, hasFolder, now, log, metrics }: Options) {
  const stopping = new AbortController()
  /** Those that even the disk did not take. Their callers were told that the call failed. */
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

  const settleUnwritten = (settlement: Settlement) =>
    settle(settlement).then(() => void unwritten.delete(settlement.id))
  async function settleFile(name: string) {
    const settlements = await written.read(name)
    if (!settlements) return
    await Promise.all(settlements.map(settle))
    await written.remove(name)
  }

  /** True when nothing is left that could be settled. Memory comes first: the disk may be what is broken. */
  async function catchUp(): Promise<boolean> {
    const inMemory = [...unwritten.values()].map((each) => () => settleUnwritten(each))
    const isMemoryDone = await attemptAll(inMemory, complain.about)
    const onDisk = (await written.names()).map((name) => () => settleFile(name))
    const isDiskDone = isMemoryDone && (await attemptAll(onDisk, complain.about))
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
    /** Resolves when the settlement survives whatever happens to this process; rejects when nothing takes it. */
    async keep(settlement: Settlement) {
      try {
        await written.write(settlement)
      } catch (error) {
        unwritten.set(settlement.id, settlement)
        wake()
        throw error
      }
    },
    /** Nothing new is begun while what has ended cannot be written down. */
    canTakeMore: () => unwritten.size === 0 && fileCount < filesMax,
    async stop() {
      stopping.abort()
      await running
    },
  }
}

const pauseFor = (ms: number, signal: AbortSignal) =>
  sleep(ms, undefined, { signal, ref: false }).catch(() => undefined)

/** One after the other, until it is plain that there is nobody to take them. True when all have succeeded. */
async function attemptAll(
  tasks: readonly (() => Promise<void>)[],
  onFailure: (error: unknown) => void,
): Promise<boolean> {
  let failures = 0
  for (const task of tasks) {
    if (failures >= failuresMax) break
    await task().catch((error: unknown) => {
      onFailure(error)
      if (!(error instanceof DamagedFile)) failures++
    })
  }
  return failures === 0
}

/** An outage is told when it begins and when it ends, a damaged file once. */
function createComplaints(log: Log) {
  const told = new Set<string>()
  return {
    about(error: unknown): false {
      const what = error instanceof DamagedFile ? error.message : 'settlements wait'
      if (!told.has(what)) log.problem(what, error)
      told.add(what)
      return false
    },
    noMore() {
      if (told.delete('settlements wait')) log.event('settlements_caught_up')
    },
  }
}
