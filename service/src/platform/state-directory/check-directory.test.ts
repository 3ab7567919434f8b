import { randomUUID } from 'node:crypto'
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { afterAll, expect, test } from 'vitest'

import { createDirectoryCheck } from './check-directory.ts'

const root = await mkdtemp(join(tmpdir(), 'gatehouse-'))
afterAll(() => rm(root, { recursive: true }))

const [ours, theirs] = [randomUUID(), randomUUID()]
const atStart = { databaseId: undefined, mayCreate: true }
const later = { databaseId: undefined, mayCreate: false }

let folders = 0
const newPath = () => join(root, `folder-${++folders}`)
type Demands = Parameters<ReturnType<typeof createDirectoryCheck>['look']>[0]
/** As a process sees it that has just started. */
const check = async (directory: string, demands: Demands) =>
  (await createDirectoryCheck(directory).look(demands)).fault

test('a directory that is missing is created at the start, for the owner alone, and nothing is left in it', async () => {
  const directory = join(newPath(), 'a', 'b')
  expect(await check(directory, atStart)).toBe(null)
  expect((await stat(directory)).mode & 0o777).toBe(0o700)
  expect(await readdir(directory)).toEqual([])
})

test('a directory that goes away later is not created again', async () => {
  const directory = newPath()
  expect(await check(directory, later)).toBe(
    `STATE_DIRECTORY (${directory}) cannot be used: it does not exist (ENOENT). Create it, or mount its volume, or set STATE_DIRECTORY to another directory.`,
  )
  await mkdir(directory)
  expect(await check(directory, later)).toBe(null)
})

test('the first database that uses a directory owns it', async () => {
  const directory = newPath()
  const own = { databaseId: ours, mayCreate: true }
  expect(await check(directory, own)).toBe(null)
  expect(await readFile(join(directory, 'database'), 'utf8')).toBe(`${ours}\n`)
  expect(await check(directory, own)).toBe(null)
  expect(await check(directory, { databaseId: theirs, mayCreate: true })).toBe(
    `STATE_DIRECTORY (${directory}) belongs to another database: its file "database" names ${ours}, and this database is ${theirs}. ` +
      'Set STATE_DIRECTORY to a directory of its own, or correct DATABASE_URL. If the other database is gone for good, remove that file; ' +
      'the others there are copies, and charges and events that still wait (settlements-*, unbilled-settlements-*, events-*).',
  )
  await rm(join(directory, 'database'))
  expect(await check(directory, { databaseId: theirs, mayCreate: false })).toBe(null)
})

test('a directory that loses its mark may be a bare mount point: the process that has seen the mark does not use it', async () => {
  const directory = newPath()
  const { look } = createDirectoryCheck(directory)
  const own = { databaseId: ours, mayCreate: false }
  expect(await look({ ...own, mayCreate: true })).toEqual({ fault: null, isOwn: true })
  await rename(directory, `${directory}-away`)
  expect(await look(own)).toMatchObject({ code: 'ENOENT', isOwn: true })
  await mkdir(directory)
  expect(await look(own)).toEqual({
    fault:
      `STATE_DIRECTORY (${directory}) was emptied, or its volume is not mounted: its file "database" is gone. ` +
      'Mount the volume. If the directory is to be used as it is, restart the process.',
    isOwn: true, // what is in memory can still be delivered
  })
  expect(await readdir(directory)).toEqual([])
  await rm(directory, { recursive: true })
  await rename(`${directory}-away`, directory)
  expect(await look(own)).toEqual({ fault: null, isOwn: true })
})

test('a mark is remembered from before the database was reached', async () => {
  const directory = newPath()
  expect(await check(directory, { databaseId: ours, mayCreate: true })).toBe(null)
  const { look } = createDirectoryCheck(directory)
  expect(await look(atStart)).toEqual({ fault: null, isOwn: false })
  await rm(join(directory, 'database'))
  expect((await look({ databaseId: ours, mayCreate: false })).fault).toContain('was emptied')
})

test('a mark that cannot be read belongs to no database', async () => {
  const directory = newPath()
  await mkdir(directory)
  await writeFile(join(directory, 'database'), '')
  expect(await check(directory, { databaseId: ours, mayCreate: true })).toMatch(
    /names no database that could be read, and this database is /,
  )
})

test.each(['/proc/gatehouse', '/proc/self/state/deep', '/sys/gatehouse', '/dev/gatehouse'])(
  '%s is special, and looking at it ends',
  async (directory) => {
    expect(await check(directory, atStart)).toMatch(
      /^STATE_DIRECTORY \(\S+\) cannot be used: it is in the special file system (proc|sysfs|cgroup2?|of devices, \/dev), which keeps no files\. Set STATE_DIRECTORY to a directory on a disk\.$/,
    )
  },
)

test('a file, what is below a file, and a link that leads nowhere', async () => {
  const file = newPath()
  await writeFile(file, '')
  const notDirectory =
    /cannot be used: it is not a directory, or something above it is none \((EEXIST|ENOTDIR)\)\. Correct the path, or set /
  expect(await check(file, atStart)).toMatch(notDirectory)
  expect(await check(join(file, 'below'), atStart)).toMatch(notDirectory)
  const link = newPath()
  await symlink('/nowhere/at/all', link)
  expect(await check(link, atStart)).toMatch(/cannot be used: it does not exist \(ENOENT\)\. /)
})

test('several processes that look at the same time do not disturb each other', async () => {
  const directory = newPath()
  const own = { databaseId: ours, mayCreate: true }
  const faults = await Promise.all(Array.from({ length: 20 }, () => check(directory, own)))
  expect(new Set(faults)).toEqual(new Set([null]))
  expect(await readdir(directory)).toEqual(['database'])
})
