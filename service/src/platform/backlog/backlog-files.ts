import { createBatched } from '#platform/batched.ts'
import type { Clock } from '#platform/clock.ts'
import { createUuid } from '#platform/id.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

/** How items become the text of a file. */
export type BacklogFormat<Item> = {
  /** What the names of its files start with. */
  prefixes: readonly string[]
  /** Which of them the file of some items has. */
  prefixOf(items: readonly Item[]): string
  write(items: readonly Item[]): string
  read(text: string): Item[]
}

type Options<Item> = {
  format: BacklogFormat<Item>
  files: TrustedFiles
  /** Is STATE_DIRECTORY set? */
  hasFolder: boolean
  now: Clock
  onWritten(items: number): void
}

/**
 * Items on disk. Those that arrive together share a file, which is written whole and never changed. Any process that
 * shares the folder may deliver a file, and removes it then.
 */
export function createBacklogFiles<Item>(options: Options<Item>) {
  const { format, files, hasFolder, now, onWritten } = options
  const write = createBatched({
    sizeMax: 128,
    waitingMax: 2000,
    run: async (items: readonly Item[]) => {
      await files.keep(`${format.prefixOf(items)}${createUuid(now())}`, format.write(items))
      onWritten(items.length)
      return items.map(() => undefined)
    },
  })
  return {
    async write(item: Item) {
      if (!hasFolder) throw new Error('STATE_DIRECTORY is not set')
      await write(item)
    },
    names: async () => (await Promise.all(format.prefixes.map(files.names))).flat(),
    /** Undefined if another process has removed the file. Throws if it is damaged, and leaves it there. */
    async read(name: string): Promise<Item[] | undefined> {
      const kept = await files.read(name, Infinity)
      if (kept) return format.read(kept.text)
      if ((await files.names(name)).includes(name)) throw new DamagedFile(name)
      return undefined
    },
    remove: files.remove,
  }
}

/** The operator should look at the file. Only files whose authenticity is proven are delivered. */
class DamagedFile extends Error {
  constructor(name: string) {
    super(`the file ${name} is damaged or was not written by this service`)
    this.name = 'DamagedFile'
  }
}
