import { setTimeout as sleep } from 'node:timers/promises'

import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { Applied } from './apply-changes.ts'
import type { InForce } from './in-force.ts'
import { keepLastKnownGood } from './last-known-good.ts'

type Options = {
  files: TrustedFiles
  log: Log
  inForce: Pick<InForce, 'all' | 'failures'>
  /** How many other processes live. */
  others: () => number
}

/** Changes are collected for a moment; without any the file is renewed, so that its age stays true. */
const collectMs = 500
const renewMs = 60_000

/** Keeps what is in force on disk, for a start while the database is away. */
export function keepOnDisk({ files, log, inForce, others }: Options) {
  const stopping = new AbortController()
  let keptAtMs = -Infinity
  let isWanted = false
  let running: Promise<void> | undefined

  /** Writes until nothing newer has arrived meanwhile. */
  async function keepAll() {
    let pauseMs = collectMs
    while (isWanted) {
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      isWanted = false
      keptAtMs = performance.now()
      await keepNow().catch((error: unknown) =>
        log.problem('keeping the last known policies', error),
      )
      // A large file stops everything else for a moment: the larger, the rarer.
      pauseMs = Math.max(collectMs, (performance.now() - keptAtMs) * 20)
    }
  }

  const keepNow = () =>
    keepLastKnownGood(files, {
      ...{ snapshots: inForce.all(), failing: [...inForce.failures.keys()], others: others() },
    })

  return {
    onApplied({ hasNews }: Applied) {
      const isDue = performance.now() - keptAtMs > renewMs
      if (stopping.signal.aborted || (!hasNews && !isDue)) return
      isWanted = true
      running ??= keepAll().finally(() => (running = undefined))
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
