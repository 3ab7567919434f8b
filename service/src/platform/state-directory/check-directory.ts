import { realpath, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import { within } from '#platform/deadline.ts'
import { replaceFile } from '#platform/trusted-file.ts'

import { markDirectory, readMark } from './directory-mark.ts'
import {
  codeOf,
  explainDirectory,
  explainEmptied,
  explainForeign,
  explainSpecial,
} from './explain-directory.ts'
import { makeDirectory } from './make-directory.ts'

/** A network file system may never answer. */
const answerMaxMs = 10_000

/** More than a few calls leave behind when the database is away, and little enough to write it again and again. */
const probe = Buffer.alloc(64 * 1024, 'gatehouse\n')
const probeName = 'probe'

type Demands = {
  /** Whose directory it has to be; undefined while the database has not been reached. */
  databaseId: string | undefined
  /** Whether to create a directory that is missing: at the start only. Later its volume may have been unmounted. */
  mayCreate: boolean
}

/** What a look at the directory has found. */
export type DirectoryState = {
  /** Why the process cannot keep its state there, and what to do about it; null where it can. */
  fault: string | null
  /** The code of the file system's error, if it had one. */
  code?: string
  /** Whether its files are those of the database. A disk that fills up or goes away does not change that. */
  isOwn: boolean
}

export function createDirectoryCheck(directory: string) {
  /** A disk that does not answer holds a thread of Node, of which there are four: one look at a time. */
  let running: Promise<DirectoryState> | undefined
  let last: DirectoryState = { fault: null, isOwn: false }
  /** A directory that loses its mark was emptied, or is the mount point of a volume that went away. */
  let wasMarked = false

  async function findState({ databaseId, mayCreate }: Demands): Promise<DirectoryState> {
    const special = await findSpecialFileSystem(directory)
    if (special !== undefined) return { fault: explainSpecial(directory, special), isOwn: false }
    if (mayCreate) await makeDirectory(directory)
    await stat(directory)
    const marked = await readMark(directory)
    if (marked === undefined && wasMarked)
      return { fault: explainEmptied(directory), isOwn: last.isOwn }
    wasMarked ||= marked !== undefined
    if (marked !== undefined && databaseId !== undefined && marked !== databaseId) {
      return { fault: explainForeign(directory, marked, databaseId), isOwn: false }
    }
    const isOwn = databaseId !== undefined
    try {
      await writeProbe(directory)
      if (isOwn && marked === undefined) await markDirectory(directory, databaseId)
    } catch (error) {
      return { ...explainError(directory, error), isOwn }
    }
    wasMarked ||= isOwn
    return { fault: null, isOwn }
  }

  return {
    async look(demands: Demands): Promise<DirectoryState> {
      running ??= findState(demands).finally(() => (running = undefined))
      const current = running
      try {
        last = await within(answerMaxMs, noAnswer, () => current)
      } catch (error) {
        last = { ...explainError(directory, error), isOwn: last.isOwn }
      }
      return last
    },
    /** What the last look has found. */
    last: () => last,
  }
}
export type DirectoryCheck = ReturnType<typeof createDirectoryCheck>

const noAnswer = () => Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })

const explainError = (directory: string, error: unknown) => ({
  fault: explainDirectory(directory, error),
  code: codeOf(error),
})

/** As files are written later: to disk, under another name at first, and with the directory itself. */
async function writeProbe(directory: string) {
  await replaceFile(join(directory, probeName), [probe])
  await rm(join(directory, probeName), { force: true })
}

/** By the number that Linux gives them (statfs). */
const specialFileSystems: Record<number, string> = {
  0x9fa0: 'proc',
  0x6265_6572: 'sysfs',
  0x27_e0eb: 'cgroup',
  0x6367_7270: 'cgroup2',
  0x1cd1: 'devpts',
  0x6462_6720: 'debugfs',
  0x7472_6163: 'tracefs',
  0x7363_6673: 'securityfs',
  0x6265_6570: 'configfs',
  0xcafe_4a11: 'bpf',
  0x1980_0202: 'mqueue',
}

/** The file system of the directory, or of the nearest one above it that exists, if it is one of the kernel's own. */
async function findSpecialFileSystem(directory: string): Promise<string | undefined> {
  const existing = await findExisting(resolve(directory))
  const path = await realpath(existing)
  // Devices are in a file system in memory, as files of /dev/shm are, which anybody may put there.
  if (/^\/dev(?:\/(?!shm(?:\/|$))|$)/.test(path)) return 'of devices, /dev'
  return specialFileSystems[(await statfs(path)).type]
}

async function findExisting(path: string): Promise<string> {
  const isThere = await stat(path).then(
    () => true,
    () => false,
  )
  return isThere || dirname(path) === path ? path : findExisting(dirname(path))
}
