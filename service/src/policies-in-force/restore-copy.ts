import { within } from '#platform/deadline.ts'
import type { SecretBox } from '#platform/secrets.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import type { CompiledVersions } from './compiled-versions.ts'
import type { InForce } from './in-force.ts'
import { readLastKnownGood, restoreSnapshot } from './last-known-good.ts'
import type { Snapshot } from './snapshot.ts'

type Options = {
  files: TrustedFiles
  engine: PatternEngine
  secretBox: SecretBox
  inForce: Pick<InForce, 'restore' | 'restoreLate'>
  signal: AbortSignal
}

/** Organizations whose copy takes longer do not delay the others: they count as failing until it is ready. */
const waitMaxMs = 10_000

/** Puts the copy on disk in force. Returns how many other processes were live when it was written, if there is one. */
export async function restoreCopy(options: Options): Promise<number | undefined> {
  const { files, engine, secretBox, inForce, signal } = options
  const copy = await readLastKnownGood(files)
  if (!copy) return undefined
  const { organizations, others, keptAtMs } = copy
  const failing = new Set([...copy.failing, ...organizations.map((each) => each.organizationId)])
  const ready: Snapshot[] = []
  let isLate = false
  const restoring = organizations.map(async (each) => {
    const { organizationId } = each
    // Not shared with builds: they forget versions that are no longer published, and the copy may still have those.
    const compiled: CompiledVersions = new Map()
    const work = startBackgroundWork(signal)
    // What cannot be restored stays among the failing ones.
    const deps = { engine, compiled, work, secretBox }
    const snapshot = await restoreSnapshot(each, deps).catch(() => undefined)
    if (!snapshot) return
    if (isLate) return inForce.restoreLate(snapshot)
    ready.push(snapshot)
    if (!copy.failing.includes(organizationId)) failing.delete(organizationId)
  })
  const tooLate = () => new Error('some policies take long')
  await within(waitMaxMs, tooLate, () => Promise.all(restoring)).catch(() => undefined)
  isLate = true
  inForce.restore({ snapshots: ready, failing: [...failing], keptAtMs })
  return others
}
