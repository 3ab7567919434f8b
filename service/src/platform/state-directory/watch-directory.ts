import { setTimeout as sleep } from 'node:timers/promises'

import { repeat } from '#platform/background/repeat.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createDirectoryCheck, type DirectoryCheck } from './check-directory.ts'

const checkMs = 5000
/** While the database has not been recognized: what waits for it is delivered soon after it is back. */
const askMs = 1000

export type StartedDirectory = {
  /** Undefined while the database has not been reached. */
  databaseId: string | undefined
  /** It remembers the mark of the directory. Undefined without STATE_DIRECTORY. */
  directoryCheck: DirectoryCheck | undefined
}

type Options = {
  directory: string | undefined
  /** What the check at the start has found; undefined if there was none. */
  started: StartedDirectory | undefined
  /** The id of the database; undefined, or a failure, while it cannot be recognized. */
  findDatabaseId(): Promise<string | undefined>
  log: Log
  metrics: Metrics
}

/** Looks again and again whether state can still be kept, because a disk fills up and a volume goes away while a process runs. */
export function watchStateDirectory(options: Options) {
  const { directory, started, findDatabaseId, log, metrics } = options
  const stopping = new AbortController()
  const { signal } = stopping
  const check =
    started?.directoryCheck ??
    (directory === undefined ? undefined : createDirectoryCheck(directory))
  let fault: string | null = null
  let databaseId = started?.databaseId

  async function watch({ look }: DirectoryCheck) {
    const lookAgain = async () => report((await look({ databaseId, mayCreate: false })).fault)
    let lookedAtMs = performance.now() // the start has just done it
    if (databaseId !== undefined) await sleep(checkMs, undefined, { signal }).catch(() => undefined)
    await repeat(signal, async () => {
      databaseId ??= await findDatabaseId().catch(() => undefined)
      const isKnown = databaseId !== undefined
      if (isKnown || performance.now() - lookedAtMs >= checkMs) {
        await lookAgain()
        lookedAtMs = performance.now()
      }
      return isKnown ? checkMs : askMs
    })
  }
  function report(found: string | null) {
    metrics.stateDirectoryUnusable.set(found === null ? 0 : 1)
    if (found !== null && found !== fault) log.problem('state_directory_unusable', new Error(found))
    if (found === null && fault !== null) log.event('state_directory_usable_again')
    fault = found
  }
  if (check) report(check.last().fault)
  const running = check && watch(check)

  return {
    /** Why state cannot be kept, as a reason not to be ready. */
    fault: () => fault,
    /** Whether what waits there may be delivered to the database: not before it is known that both belong together. */
    isOwn: () => check?.last().isOwn ?? true,
    async stop() {
      stopping.abort()
      await running
    },
  }
}
