import { setTimeout as sleep } from 'node:timers/promises'

import { repeat } from '#platform/background/repeat.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createDirectoryCheck, type DirectoryCheck } from './check-directory.ts'

const checkMs = 5000

export type StartedDirectory = {
  /** Undefined while the database has not been reached. */
  databaseId: string | undefined
  /** It remembers the mark of the directory. Undefined without STATE_DIRECTORY. */
  directoryCheck: DirectoryCheck | undefined
}

type Options = {
  directory: string | undefined
  /** What the start has found out; undefined if nobody has looked. */
  started: StartedDirectory | undefined
  log: Log
  metrics: Metrics
}

/** Looks again and again whether state can still be kept, because a disk fills up and a volume goes away while a process runs. */
export function watchStateDirectory({ directory, started, log, metrics }: Options) {
  const stopping = new AbortController()
  const { signal } = stopping
  const check =
    started?.directoryCheck ??
    (directory === undefined ? undefined : createDirectoryCheck(directory))
  let fault = check?.last().fault ?? null
  let databaseId = started?.databaseId

  async function watch({ look }: DirectoryCheck) {
    await sleep(checkMs, undefined, { signal }).catch(() => undefined) // the start has just looked
    await repeat(signal, async () => {
      report((await look({ databaseId, mayCreate: false })).fault)
      return checkMs
    })
  }
  function report(found: string | null) {
    metrics.stateDirectoryUnusable.set(found === null ? 0 : 1)
    if (found !== null && found !== fault) log.problem('state_directory_unusable', new Error(found))
    if (found === null && fault !== null) log.event('state_directory_usable_again')
    fault = found
  }
  const running = check && watch(check)

  return {
    /** Why state cannot be kept, as a reason not to be ready. */
    fault: () => fault,
    /** The database is known now: from the next look on, the directory has to be its own. */
    belongsTo(id: string) {
      databaseId = id
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
