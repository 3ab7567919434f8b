import { execFileSync } from 'node:child_process'
import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import {
  copyFile,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'

import { createTrustedFiles } from './trusted-file.ts'

const root = await mkdtemp(join(tmpdir(), 'gatehouse-'))
afterAll(() => rm(root, { recursive: true }))

const newKey = () => createSecretKey(randomBytes(32))
const [key, otherKey] = [newKey(), newKey()]
const startMs = Date.parse('2026-01-01')
const minuteMs = 60_000
const day = 24 * 60 * minuteMs

let folders = 0
function openFolder() {
  const directory = join(root, `folder-${++folders}`)
  mkdirSync(directory)
  let nowMs = startMs
  const withKeys = (...keys: [KeyObject, ...KeyObject[]]) =>
    createTrustedFiles({ directory, now: () => new Date(nowMs), keys })
  const files = withKeys(key)
  return {
    directory,
    files,
    withKeys,
    pathOf: (name: string) => join(directory, name),
    pass: (ms: number) => (nowMs += ms),
    read: async (from = files) => (await from.read('policies', day))?.text,
  }
}

const texts = ['', '\n', '{"a":1}\n{"b":2}\n', '\uFEFFä€😀\0\r\n', 'x'.repeat(3_000_000)]

test('a file is read with the time it was written', async () => {
  const { files, pass } = openFolder()
  for (const text of texts) {
    await files.keep('policies', text)
    expect(await files.read('policies', day)).toEqual({ text, keptAtMs: startMs })
  }
  pass(minuteMs)
  await files.keep('policies', 'newer')
  expect(await files.read('policies', day)).toEqual({
    text: 'newer',
    keptAtMs: startMs + minuteMs,
  })
})

test('any text is read as it was written', async () => {
  const { files, read } = openFolder()
  await fc.assert(
    fc.asyncProperty(fc.string({ unit: 'binary' }), async (text) => {
      await files.keep('policies', text)
      expect(await read()).toBe(text)
    }),
    { numRuns: 20 },
  )
})

test('only the owner may read the file', async () => {
  const { files, pathOf } = openFolder()
  await files.keep('policies', 'x')
  expect((await stat(pathOf('policies'))).mode & 0o777).toBe(0o600)
})

test('a folder that is missing is not created, not even for the first file', async () => {
  const { files, directory } = openFolder()
  await rm(directory, { recursive: true })
  await expect(files.keep('policies', 'x')).rejects.toThrow('ENOENT')
  await expect(stat(directory)).rejects.toThrow('ENOENT')
})

test('a file that is too old, or more than five minutes from the future, is not read', async () => {
  const { files, read, pass } = openFolder()
  await files.keep('policies', 'x')
  pass(day - 1)
  expect(await read()).toBe('x')
  pass(1)
  expect(await read()).toBeUndefined()
  expect(await files.read('policies', Infinity)).toMatchObject({ text: 'x' })
  pass(-day - 5 * minuteMs)
  expect(await read()).toBe('x')
  pass(-1)
  expect(await read()).toBeUndefined()
})

test('a file with any bit flipped, cut anywhere or made longer is rejected', async () => {
  const { files, read, pathOf } = openFolder()
  await files.keep('policies', 'two\nlines')
  const whole = await readFile(pathOf('policies'))
  const readInstead = async (bytes: Buffer) => {
    await writeFile(pathOf('policies'), bytes)
    return read()
  }
  for (let bit = 0; bit < whole.length * 8; bit++) {
    const changed = Buffer.from(whole)
    changed[bit >> 3]! ^= 1 << (bit & 7)
    expect(await readInstead(changed), `bit ${bit}`).toBeUndefined()
  }
  for (let length = 0; length < whole.length; length++) {
    expect(await readInstead(whole.subarray(0, length)), `${length} bytes`).toBeUndefined()
  }
  for (const more of ['\0', '\n', ' ']) {
    expect(await readInstead(Buffer.concat([whole, Buffer.from(more)]))).toBeUndefined()
    expect(await readInstead(Buffer.concat([Buffer.from(more), whole]))).toBeUndefined()
  }
  expect(await readInstead(whole)).toBe('two\nlines')
})

test('a file with the name, the time or the text of another is rejected', async () => {
  const { files, read, pathOf, pass } = openFolder()
  await files.keep('policies-2', 'x')
  await copyFile(pathOf('policies-2'), pathOf('policies'))
  expect(await read()).toBeUndefined()

  await files.keep('policies', 'x')
  const file = await readFile(pathOf('policies'), 'utf8')
  for (const later of [`${startMs + 1}`, `0${startMs}`, `${startMs}.0`, `+${startMs}`]) {
    await writeFile(pathOf('policies'), file.replace(`${startMs}`, later))
    expect(await read()).toBeUndefined()
  }
  pass(minuteMs)
  await files.keep('policies', 'y')
  const [head] = (await readFile(pathOf('policies'), 'utf8')).split('\n')
  await writeFile(pathOf('policies'), `${head}\nx`)
  expect(await read()).toBeUndefined()
})

test('the first key signs, and every key of the ring verifies', async () => {
  const { files, read, withKeys } = openFolder()
  await files.keep('policies', 'old')
  expect(await read(withKeys(otherKey))).toBeUndefined()
  const rotated = withKeys(otherKey, key)
  expect(await read(rotated)).toBe('old')
  await rotated.keep('policies', 'new')
  expect(await read(withKeys(otherKey))).toBe('new')
  expect(await read()).toBeUndefined()
})

test('of concurrent writes one whole file stays, and nothing else', async () => {
  const { read, directory, withKeys } = openFolder()
  const processes = [withKeys(key), withKeys(key)]
  const candidates = Array.from({ length: 20 }, (_, index) => `${index} `.repeat(100_000))
  const reads = candidates.map(async (text, index) => {
    await processes[index % 2]!.keep('policies', text)
    return read()
  })
  for (const text of await Promise.all(reads)) expect(candidates.includes(text!)).toBe(true)
  expect(await readdir(directory)).toEqual(['policies'])
})

test('temporary files of a crash do no harm, and are removed after an hour', async () => {
  const { files, read, pathOf, directory } = openFolder()
  await files.keep('policies', 'good')
  const ages = { 'policies.a.fresh': 61, 'policies.b.fresh': 59, 'others-2.a.fresh': 61 }
  const others = { 'policies.bak': 61, 'policies.fresh.bak': 61 }
  for (const [name, minutes] of Object.entries({ ...ages, ...others })) {
    await writeFile(pathOf(name), 'gatehouse-kept-1 17')
    const time = new Date(Date.now() - minutes * minuteMs)
    await utimes(pathOf(name), time, time)
  }
  expect(await read()).toBe('good')
  await files.keep('policies', 'better')
  expect(await read()).toBe('better')
  const left = ['policies', 'policies.b.fresh', ...Object.keys(others)]
  expect((await readdir(directory)).toSorted()).toEqual(left.toSorted())
})

test('files can be listed by prefix and removed, also twice', async () => {
  const { files, directory } = openFolder()
  expect(await files.names('settlements-')).toEqual([])
  for (const name of ['settlements-b', 'settlements-a', 'policies']) await files.keep(name, name)
  await writeFile(join(directory, 'settlements-c.x.fresh'), '')
  expect(await files.names('settlements-')).toEqual(['settlements-a', 'settlements-b'])
  await files.remove('settlements-a')
  await files.remove('settlements-a')
  expect(await files.names('settlements-')).toEqual(['settlements-b'])
  await expect(files.remove('../policies')).rejects.toThrow('is no name')
})

test('with an infinite age a file is read whatever the clocks say', async () => {
  const { files, directory } = openFolder()
  await files.keep('policies', 'good')
  const earlier = createTrustedFiles({ directory, now: () => new Date(0), keys: [key] })
  expect(await earlier.read('policies', day)).toBeUndefined()
  expect((await earlier.read('policies', Infinity))?.text).toBe('good')
})

test('a temporary file that cannot be removed does not prevent writing', async () => {
  const { files, read, pathOf } = openFolder()
  await mkdir(pathOf('policies.a.fresh'), { recursive: true })
  await utimes(pathOf('policies.a.fresh'), new Date(0), new Date(0))
  await files.keep('policies', 'good')
  expect(await read()).toBe('good')
})

test('a failed write throws, and leaves the last good file and nothing else', async () => {
  const { files, directory, pathOf } = openFolder()
  await mkdir(pathOf('policies'), { recursive: true })
  await expect(files.keep('policies', 'x')).rejects.toThrow(/EISDIR|ENOTEMPTY|EEXIST/)
  expect(await files.read('policies', day)).toBeUndefined()
  expect(await readdir(directory)).toEqual(['policies'])
})

test('an unusable folder: writing fails, reading finds nothing', async () => {
  const { files, directory } = openFolder()
  await rm(directory, { recursive: true })
  expect(await files.read('policies', day)).toBeUndefined()
  await writeFile(directory, 'a file stands here')
  await expect(files.keep('policies', 'x')).rejects.toThrow(/EEXIST|ENOTDIR/)
  expect(await files.read('policies', day)).toBeUndefined()
})

test('without a folder nothing is written and nothing is read', async () => {
  const files = createTrustedFiles({ directory: undefined, now: () => new Date(), keys: [key] })
  await files.keep('policies', 'x')
  expect(await files.read('policies', day)).toBeUndefined()
})

test('a name that could leave the folder or be mistaken is refused', async () => {
  const { files } = openFolder()
  for (const name of ['', '..', '../policies', 'a/b', 'a.b', 'a b', 'A', 'a\n', 'a\0', 'ä']) {
    await expect(files.keep(name, 'x')).rejects.toThrow('is no name for a kept file')
    await expect(files.read(name, day)).rejects.toThrow('is no name for a kept file')
  }
})

test('a huge file is refused without being read', async () => {
  const { files, read, pathOf } = openFolder()
  await files.keep('policies', 'x')
  await truncate(pathOf('policies'), 1024 ** 3)
  const before = process.resourceUsage().maxRSS
  expect(await read()).toBeUndefined()
  expect(process.resourceUsage().maxRSS - before).toBeLessThan(100 * 1024)
})

test('a text too large to be read again does not replace the last good file', async () => {
  const { files, read } = openFolder()
  await files.keep('policies', 'good')
  const tooLarge = 'x'.repeat(256 * 1024 ** 2 + 1)
  await expect(files.keep('policies', tooLarge)).rejects.toThrow('policies is too large to keep.')
  expect(await read()).toBe('good')
})

test('a device or a pipe in the place of the file is not read', async () => {
  const { read, pathOf } = openFolder()
  await symlink('/dev/zero', pathOf('policies'))
  expect(await read()).toBeUndefined()
  await rm(pathOf('policies'))
  execFileSync('/usr/bin/mkfifo', [pathOf('policies')])
  expect(await read()).toBeUndefined()
})

test('a link in the place of the file is replaced, not followed', async () => {
  const { files, read, pathOf } = openFolder()
  await writeFile(pathOf('precious'), 'untouched')
  await symlink(pathOf('precious'), pathOf('policies'))
  await files.keep('policies', 'x')
  expect(await read()).toBe('x')
  expect(await readFile(pathOf('precious'), 'utf8')).toBe('untouched')
})
