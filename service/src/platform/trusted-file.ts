import { createHmac, type KeyObject, randomUUID, timingSafeEqual } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'

import type { Clock } from './clock.ts'

/**
 * Last good copies on disk. Whoever else can write the folder can take one away or put an older one
 * of ours back, but cannot make one up.
 */
export type TrustedFiles = {
  /** Replaces the whole file or nothing. Of two at the same time, the last to finish stays. */
  keep(name: string, text: string): Promise<void>
  /** What was kept under this name, unless it is that old, missing, unreadable or not proven ours. */
  read(name: string, maxAgeMs: number): Promise<KeptText | undefined>
  /** The names of what is kept that start like this, in order. */
  names(prefix: string): Promise<string[]>
  /** Removing what is not there is no error: somebody else may have been faster. */
  remove(name: string): Promise<void>
}
type KeptText = { text: string; keptAtMs: number }

type Keys = readonly [KeyObject, ...KeyObject[]]
type Options = {
  /** Without one nothing is kept. */
  directory: string | undefined
  now: Clock
  /** The first one proves, all of them are believed. */
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
      // A file too large to be read again must not replace one that can be.
      if (Buffer.byteLength(text) > textBytesMax) throw new Error(`${name} is too large to keep.`)
      const file = toFile(name, { text, keptAtMs: now().getTime() }, keys[0])
      await mkdir(directory, { recursive: true, mode: 0o700 })
      await replaceFile(path, file)
    },
    async read(name, maxAgeMs) {
      const path = join(directory, checked(name))
      const file = await readBounded(path).catch(() => undefined)
      const kept = file && fromFile(name, file, keys)
      if (!kept) return undefined
      if (maxAgeMs === Infinity) return kept // its age does not matter, nor that a clock was wrong
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

/** No dot, slash or space: a name stays in the folder, and its end is plain in what is proven. */
const namePattern = /^[a-z0-9-]+$/
function checked(name: string): string {
  if (!namePattern.test(name)) throw new Error(`'${name}' is no name for a kept file.`)
  return name
}

// A file is one line `<format> <milliseconds> <proof>`, then the text as it is, however large.
const format = 'gatehouse-kept-1'
const headLine = /^gatehouse-kept-1 (\d{1,16}) ([0-9a-f]{64})$/
const headBytesMax = 128

function toFile(name: string, { text, keptAtMs }: KeptText, key: KeyObject): readonly Buffer[] {
  const body = Buffer.from(text)
  const proof = proofOf({ name, keptAt: String(keptAtMs), body }, key)
  return [Buffer.from(`${format} ${keptAtMs} ${proof.toString('hex')}\n`), body]
}

function fromFile(name: string, file: Buffer, keys: Keys): KeptText | undefined {
  const headEnd = file.subarray(0, headBytesMax).indexOf('\n')
  const head = file.toString('latin1', 0, Math.max(headEnd, 0))
  const [, keptAt = '', claimed = ''] = headLine.exec(head) ?? []
  const body = file.subarray(headEnd + 1)
  const isOurs =
    claimed &&
    keys.some((key) =>
      timingSafeEqual(Buffer.from(claimed, 'hex'), proofOf({ name, keptAt, body }, key)),
    )
  return isOurs ? { text: body.toString(), keptAtMs: Number(keptAt) } : undefined
}

type Claim = { name: string; keptAt: string; body: Buffer }

const proofOf = ({ name, keptAt, body }: Claim, key: KeyObject) =>
  createHmac('sha256', key).update(`${format} ${name} ${keptAt}\n`).update(body).digest()

async function readBounded(path: string): Promise<Buffer | undefined> {
  // Without O_NONBLOCK, a pipe that somebody put there would hold us until it has a writer.
  await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const status = await file.stat()
  if (!status.isFile() || status.size > headBytesMax + textBytesMax) return undefined
  return await file.readFile()
}

/** Processes may share the folder: each writes a file of its own and moves it into place. */
async function replaceFile(path: string, parts: readonly Buffer[]): Promise<void> {
  const fresh = `${path}.${randomUUID()}${freshEnding}`
  try {
    await writeFresh(fresh, path, parts)
    await rename(fresh, path)
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
  // The new name too must survive a power cut.
  await using folder = await open(dirname(path))
  await folder.sync()
}

async function writeFresh(fresh: string, path: string, parts: readonly Buffer[]): Promise<void> {
  await using file = await open(fresh, 'wx', 0o600)
  const { mtimeMs } = await file.stat()
  // Before the writing, because they may be what fills the disk. One that stays does no other harm.
  await removeLeftovers(path, mtimeMs - leftoverAfterMs).catch(() => undefined)
  for (const part of parts) await file.appendFile(part)
  await file.sync()
}

const freshEnding = '.fresh'

/** What crashed processes began to write. Ages compare by the file system's clock, not by ours. */
async function removeLeftovers(path: string, beforeMs: number): Promise<void> {
  const begun = (await readdir(dirname(path))).filter((each) => each.endsWith(freshEnding))
  for (const each of begun) {
    const leftover = join(dirname(path), each)
    const { mtimeMs } = await lstat(leftover)
    if (mtimeMs < beforeMs) await rm(leftover, { force: true })
  }
}
