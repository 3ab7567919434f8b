import { createBatched } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import { createUuid } from '#platform/id.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import type { Settlement } from './credit-store.ts'
import { readSettlements, writeSettlements } from './settlement-record.ts'

type Options = {
  files: TrustedFiles
  /** Is there a folder that survives us? */
  hasFolder: boolean
  now: Clock
  onWritten(settlements: number): void
}

const prefix = 'settlements-'

/**
 * Settlements on disk. Those that come together share a file, which is written whole and never changed: any
 * process of the same folder may read it, and whoever has settled it removes it.
 */
export function createSettlementFiles({ files, hasFolder, now, onWritten }: Options) {
  const write = createBatched({
    ...{ sizeMax: 128, waitingMax: 2000 },
    run: async (settlements: readonly Settlement[]) => {
      await files.keep(`${prefix}${createUuid(now())}`, writeSettlements(settlements))
      onWritten(settlements.length)
      return settlements.map(() => undefined)
    },
  })
  return {
    async write(settlement: Settlement) {
      if (!hasFolder) throw new Error('STATE_DIRECTORY is not set')
      await write(settlement)
    },
    names: () => files.names(prefix),
    /** Undefined when another process was faster; throws where it cannot be read, and then it stays. */
    async read(name: string): Promise<Settlement[] | undefined> {
      const kept = await files.read(name, Infinity)
      if (kept) return readSettlements(kept.text)
      if ((await files.names(name)).includes(name)) throw new DamagedFile(name)
      return undefined
    },
    remove: files.remove,
  }
}

/** Somebody should look at it. No settlement is ever made from a file that is not proven ours. */
class DamagedFile extends Error {
  constructor(name: string) {
    super(`the file ${name} cannot be read as settlements of ours`)
    this.name = 'DamagedFile'
  }
}
