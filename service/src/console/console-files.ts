import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

/** A file of the console as the build lists it. */
type ListedFile = {
  /** Its path below /console/. */
  readonly path: string
  readonly type: string
  /** The codings in which it is there besides its own bytes. */
  readonly codings: readonly Coding[]
}
export type Coding = 'br' | 'gzip'

export type ConsoleFile = {
  readonly type: string
  readonly codings: readonly Coding[]
  read(coding: Coding | null): Promise<Buffer>
}

const extensions = { br: '.br', gzip: '.gz' } as const
const listName = 'files.json'

/**
 * The files of the built console by their path. Only the list is read at the start; a file is read when it is first asked for,
 * and kept. What is not on the list is never read, so no path of a request reaches the file system.
 */
export function loadConsoleFiles(folder: URL): ReadonlyMap<string, ConsoleFile> {
  const listed = JSON.parse(readFileSync(new URL(listName, folder), 'utf8')) as ListedFile[]
  return new Map(listed.map((file) => [file.path, toConsoleFile(file, folder)]))
}

function toConsoleFile({ path, type, codings }: ListedFile, folder: URL): ConsoleFile {
  const contents = new Map<Coding | null, Promise<Buffer>>()
  return {
    type,
    codings,
    read(coding) {
      const known = contents.get(coding)
      if (known) return known
      const name = `${path}${coding === null ? '' : extensions[coding]}`
      const reading = readFile(new URL(name, folder))
      contents.set(coding, reading)
      // A file that could not be read is tried again at the next request.
      reading.catch(() => contents.delete(coding))
      return reading
    },
  }
}
