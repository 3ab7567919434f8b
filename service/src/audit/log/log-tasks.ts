import type { Task, TaskDeps } from '#platform/background/run-task.ts'
import type { Db } from '#platform/database.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'

import { keepTiles, leavesMax } from './keep-tiles.ts'
import { shards, stopCursorsOfOtherServer } from './log-store.ts'
import { batchMax } from './sequence-events.ts'
import { createSequencer, type Sequencer } from './sequencer.ts'
import { headsMax, publishKeys, signCheckpoints } from './sign-checkpoints.ts'
import type { SigningKeys } from './signing-keys.ts'

/**
 * How long the worker waits for new events after it has found none, and after it has found some. A round looks into every partition
 * for every shard, whether it numbers one event or a hundred: fewer rounds cost less.
 */
const idleMs = 1000
const busyMs = 250
const signEveryMs = 5000
const tileEveryMs = 30_000
const checkEveryMs = 10_000

type Deps = TaskDeps & {
  db: Db
  /** Without keys there are no checkpoints. */
  keys: SigningKeys | undefined
}

/** The tasks that number events, sign checkpoints, keep tiles, and watch over the cursor. */
export function auditLogTasks({ keys, ...deps }: Deps): Task[] {
  const { db } = deps
  const sequencer = createSequencer(deps)
  return [
    {
      name: 'event_numbering',
      everyMs: idleMs,
      // All of a core: events wait for it, each of them needs a fixed amount of work, and calls cannot make more of them than
      // the database takes. Without a rest it never falls behind.
      share: 1,
      rowsMax: batchMax,
      failureCode: 'audit_sequencing_failed',
      run: createNumbering(deps, sequencer),
    },
    {
      name: 'failing_shards',
      everyMs: idleMs,
      share: 0.2,
      rowsMax: batchMax,
      failureCode: 'audit_sequencing_failed',
      async run() {
        await sequencer.retryShards()
      },
    },
    ...(keys ? [signing({ ...deps, keys })] : []),
    {
      name: 'audit_tiles',
      everyMs: tileEveryMs,
      share: 0.2,
      rowsMax: leavesMax,
      failureCode: 'audit_tiles_failed',
      async run({ rest }) {
        await keepTiles(db, rest)
      },
    },
    {
      name: 'audit_cursor_check',
      everyMs: checkEveryMs,
      share: 0.1,
      rowsMax: shards.length,
      failureCode: 'audit_cursor_not_checked',
      async run() {
        await checkCursor(deps)
      },
    },
  ]
}

/** On a server that has given fewer transaction numbers than the one before, new events look as if they had been numbered. */
export async function checkCursor({ db, log, metrics }: Pick<Deps, 'db' | 'log' | 'metrics'>) {
  const isStopped = await stopCursorsOfOtherServer(db)
  metrics.auditNumberingStopped.set(isStopped ? 1 : 0)
  if (!isStopped) return
  log.problem(
    'audit_cursor_ahead',
    new Error(
      'The database has transaction numbers of another server, so new audit events get no numbers and are not exported. Run: gatehouse operator audit resume',
    ),
  )
}

function createNumbering(deps: Omit<Deps, 'keys'>, sequencer: Sequencer) {
  let isChecked = false
  return async (): Promise<number> => {
    // First: as soon as anything is numbered, it may be too late to see that the database was moved.
    if (!isChecked) await checkCursor(deps)
    isChecked = true
    const numbered = await sequencer.numberEvents()
    if (numbered.hasMore) return 0
    return numbered.events > 0 ? busyMs : idleMs
  }
}

function signing(deps: Omit<Deps, 'keys'> & { keys: SigningKeys }): Task {
  const throttle = createLogThrottle(deps)
  const onRefused = (error: unknown) => throttle('audit_keys_not_published', error)
  let isPublished = false
  return {
    name: 'checkpoint_signing',
    everyMs: signEveryMs,
    share: 0.2,
    rowsMax: headsMax,
    failureCode: 'audit_checkpoints_failed',
    async run() {
      isPublished ||= await arePublished(deps, onRefused)
      if (!isPublished) return signEveryMs
      const signed = await signCheckpoints(deps)
      deps.metrics.auditCheckpoints.inc(signed)
      return signed > 0 ? 0 : signEveryMs
    },
  }
}

/** What is wrong with the keys has a code of its own: an operator has to correct them. */
const arePublished = (
  deps: Omit<Deps, 'keys'> & { keys: SigningKeys },
  onRefused: (error: unknown) => void,
): Promise<boolean> =>
  publishKeys(deps).then(
    () => true,
    (error: unknown) => {
      onRefused(error)
      return false
    },
  )
