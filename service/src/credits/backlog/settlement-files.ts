import type { Settlement } from '#credits/settlement.ts'
import { createBatched } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import { createUuid } from '#platform/id.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

import { readSettlements, writeSettlements } from './settlement-record.ts'

type Options = {
  files: TrustedFiles
  /** Is STATE_DIRECTORY set? */
  hasFolder: boolean
  now: Clock
  onWritten(settlements: number): void
}

const prefix = 'settlements-'

/**
 * Settlements on disk. Those that arrive together share a file, which is written whole and never changed. Any
 * process that shares the folder may settle a file, and removes it then.
 */
export function createSettlementFiles({ files, hasFolder, now, onWritten }: Options) {
  const write = createBatched({
    sizeMax: 128,
    waitingMax: 2000,
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
    /** Undefined if another process has removed the file. Throws if it is damaged, and leaves it there. */
    async read(name: string): Promise<Settlement[] | undefined> {
      const kept = await files.read(name, Infinity)
      if (kept) return readSettlements(kept.text)
      if ((await files.names(name)).includes(name)) throw new DamagedFile(name)
      return undefined
    },
    remove: files.remove,
  }
}

/** The operator should look at the file. Only files whose authenticity is proven are settled. */
class DamagedFile extends Error {
  constructor(name: string) {
    super(`the file ${name} is damaged or was not written by this service`)
    this.name = 'DamagedFile'
  }
}
