import { setTimeout as sleep } from 'node:timers/promises'

import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { AppliedPoll } from './apply-changes.ts'
import type { InForce } from './in-force.ts'
import { keepLastKnownGood } from './last-known-good.ts'

type Options = {
  files: TrustedFiles
  log: Log
  inForce: Pick<InForce, 'all' | 'failures'>
  /** How many other processes are live. */
  others: () => number
}

/** Changes are collected for `collectMs`. Without changes the file is rewritten every `renewMs`, to keep its age low. */
const collectMs = 500
const renewMs = 60_000

/** Writes the snapshots in force to disk, for a start while the database is unreachable. */
export function keepOnDisk({ files, log, inForce, others }: Options) {
  const stopping = new AbortController()
  let writtenAtMs = -Infinity
  let hasChanged = false
  let running: Promise<void> | undefined

  /** Writes until nothing has changed during the last write. */
  async function writeAll() {
    let pauseMs = collectMs
    while (hasChanged) {
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      hasChanged = false
      writtenAtMs = performance.now()
      await writeNow().catch((error: unknown) =>
        log.problem('last_known_policies_not_written', error),
      )
      // Serializing a large file blocks the event loop: the longer it takes, the longer the next pause.
      pauseMs = Math.max(collectMs, (performance.now() - writtenAtMs) * 20)
    }
  }

  const writeNow = () =>
    keepLastKnownGood(files, {
      snapshots: inForce.all(),
      failing: [...inForce.failures.keys()],
      others: others(),
    })

  return {
    onApplied({ hasChanges }: AppliedPoll) {
      const isDue = performance.now() - writtenAtMs > renewMs
      if (stopping.signal.aborted || (!hasChanges && !isDue)) return
      hasChanged = true
      running ??= writeAll().finally(() => (running = undefined))
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
