import { realpath, rm, stat, statfs } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'

import { within } from '#platform/deadline.ts'
import { replaceFile } from '#platform/trusted-file.ts'

import { claimDirectory } from './directory-mark.ts'
import { explainDirectory, explainForeign, explainSpecial } from './explain-directory.ts'
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

/** Looks why the process cannot keep its state there, and what to do about it; null where it can. */
export function createDirectoryCheck(directory: string) {
  /** A disk that does not answer holds a thread of Node, of which there are four: one look at a time. */
  let running: Promise<string | null> | undefined
  return async (demands: Demands): Promise<string | null> => {
    running ??= findFault(directory, demands).finally(() => (running = undefined))
    const current = running
    try {
      return await within(answerMaxMs, noAnswer, () => current)
    } catch (error) {
      return explainDirectory(directory, error)
    }
  }
}

const noAnswer = () => Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' })

async function findFault(directory: string, { databaseId, mayCreate }: Demands) {
  const special = await findSpecialFileSystem(directory)
  if (special !== undefined) return explainSpecial(directory, special)
  if (mayCreate) await makeDirectory(directory)
  // As files are written later: to disk, under another name at first, and with the directory itself.
  await replaceFile(join(directory, probeName), [probe])
  await rm(join(directory, probeName), { force: true })
  if (databaseId === undefined) return null
  const marked = await claimDirectory(directory, databaseId)
  return marked === databaseId ? null : explainForeign(directory, marked, databaseId)
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
