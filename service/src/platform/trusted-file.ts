import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Clock } from './clock.ts'

/**
 * Last good copies on disk, authenticated with a key. A process with write access to the folder but without
 * the key can delete a copy or put an older one back, but cannot forge one.
 */
export type TrustedFiles = {
  /** Replaces the file atomically. Of two concurrent writes, the last to finish wins. */
  keep(name: string, text: string): Promise<void>
  /** The file with this name; undefined when it is missing, unreadable, older than `maxAgeMs` or not authentic. */
  read(name: string, maxAgeMs: number): Promise<KeptText | undefined>
  /** The names of the files that start with the prefix, sorted. */
  names(prefix: string): Promise<string[]>
  /** Removing a file that does not exist is no error: another process may have been faster. */
  remove(name: string): Promise<void>
}
type KeptText = { text: string; keptAtMs: number }

type Keys = readonly [KeyObject, ...KeyObject[]]
type Options = {
  /**
   * undefined: nothing is written. It is not created: one that is missing may be a volume that is not mounted, and files
   * below it would be out of sight with the next mount.
   */
  directory: string | undefined
  now: Clock
  /** The first one signs, all of them verify. */
  keys: Keys
}

const textBytesMax = 256 * 1024 * 1024
const fromFutureMaxMs = 5 * 60 * 1000
const leftoverAfterMs = 60 * 60 * 1000

export function createTrustedFiles({ directory, now, keys }: Options): TrustedFiles {
  if (directory === undefined) return nothingKept
  return {
    async keep(name, text) {
      const path = join(directory, checked(name))
      // A file that would be too large to read must not replace a readable one.
      if (Buffer.byteLength(text) > textBytesMax) throw new Error(`${name} is too large to keep.`)
      const file = toFile(name, { text, keptAtMs: now().getTime() }, keys[0])
      await replaceFile(path, file)
    },
    async read(name, maxAgeMs) {
      const path = join(directory, checked(name))
      const file = await readBounded(path).catch(() => undefined)
      const kept = file && fromFile(name, file, keys)
      if (!kept) return undefined
      if (maxAgeMs === Infinity) return kept // a time in the future is accepted too
      const ageMs = now().getTime() - kept.keptAtMs
      return ageMs < maxAgeMs && ageMs >= -fromFutureMaxMs ? kept : undefined
    },
    async names(prefix) {
      const all = await readdir(directory).catch(whenMissing<string[]>([]))
      return all.filter((each) => each.startsWith(prefix) && namePattern.test(each)).toSorted()
    },
    remove: async (name) => rm(join(directory, checked(name)), { force: true }),
  }
}

const nothingKept: TrustedFiles = {
  keep: async () => {},
  read: async () => undefined,
  names: async () => [],
  remove: async () => {},
}

const whenMissing =
  <T>(nothing: T) =>
  (error: unknown): T => {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return nothing
    throw error
  }

/** No dot or slash, so that a name stays in the folder; no space, which separates it in the signed text. */
const namePattern = /^[a-z0-9-]+$/
function checked(name: string): string {
  if (!namePattern.test(name)) throw new Error(`'${name}' is no name for a kept file.`)
  return name
}

// A file is one line `<format> <milliseconds> <signature>`, followed by the text.
const format = 'gatehouse-kept-1'
const headLine = /^gatehouse-kept-1 (\d{1,16}) ([0-9a-f]{64})$/
const headBytesMax = 128

function toFile(name: string, { text, keptAtMs }: KeptText, key: KeyObject): readonly Buffer[] {
  const body = Buffer.from(text)
  const signature = sign({ name, keptAt: String(keptAtMs), body }, key)
  return [Buffer.from(`${format} ${keptAtMs} ${signature.toString('hex')}\n`), body]
}

function fromFile(name: string, file: Buffer, keys: Keys): KeptText | undefined {
  const headEnd = file.subarray(0, headBytesMax).indexOf('\n')
  const head = file.toString('latin1', 0, Math.max(headEnd, 0))
  const [, keptAt = '', signature = ''] = headLine.exec(head) ?? []
  const body = file.subarray(headEnd + 1)
  const isAuthentic =
    signature &&
    keys.some((key) =>
      timingSafeEqual(Buffer.from(signature, 'hex'), sign({ name, keptAt, body }, key)),
    )
  return isAuthentic ? { text: body.toString(), keptAtMs: Number(keptAt) } : undefined
}

type SignedContent = { name: string; keptAt: string; body: Buffer }

const sign = ({ name, keptAt, body }: SignedContent, key: KeyObject) =>
  createHmac('sha256', key).update(`${format} ${name} ${keptAt}\n`).update(body).digest()

async function readBounded(path: string): Promise<Buffer | undefined> {
  // Without O_NONBLOCK, opening a named pipe would wait until it has a writer.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const status = await file.stat()
  if (!status.isFile() || status.size > headBytesMax + textBytesMax) return undefined
  return await file.readFile()
}

/** Processes may share the folder: each writes a temporary file of its own and renames it. */
export async function replaceFile(path: string, parts: readonly Buffer[]): Promise<void> {
  const temporary = `${path}.${randomUUID()}${temporaryEnding}`
  try {
    await writeTemporary(temporary, path, parts)
    await rename(temporary, path)
  } catch (error) {
    await rm(temporary, { force: true })
    throw error
  }
  // The rename, too, must survive a power failure.
  await using folder = await open(dirname(path))
  await folder.sync()
}

async function writeTemporary(
  temporary: string,
  path: string,
  parts: readonly Buffer[],
): Promise<void> {
  await using file = await open(temporary, 'wx', 0o600)
  const { mtimeMs } = await file.stat()
  // Before writing, because leftovers may be what fills the disk. They do no other harm.
  await removeLeftovers(path, mtimeMs - leftoverAfterMs).catch(() => undefined)
  for (const part of parts) await file.appendFile(part)
  await file.sync()
}

const temporaryEnding = '.fresh'

/** Removes temporary files of crashed processes. Their age is measured by the file system's clock, not by ours. */
async function removeLeftovers(path: string, beforeMs: number): Promise<void> {
  const leftovers = (await readdir(dirname(path))).filter((each) => each.endsWith(temporaryEnding))
  for (const each of leftovers) {
    const leftover = join(dirname(path), each)
    const { mtimeMs } = await lstat(leftover)
    if (mtimeMs < beforeMs) await rm(leftover, { force: true })
  }
}
