import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { expect, onTestFinished, test } from 'vitest'

import { readReferencedKey } from './key-reference.ts'

async function keyFile(text: string): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-key-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'key')
  await writeFile(file, text)
  return file
}

test('a key is read from a file or a variable, without the space around it', async () => {
  const file = await keyFile('sk-one\n')
  expect(readReferencedKey({ file }, {})).toBe('sk-one')
  expect(readReferencedKey({ env: 'A_KEY' }, { A_KEY: ' sk-two ' })).toBe('sk-two')
})

test.each([
  [{}, 'the environment variable A_KEY is not set'],
  [{ A_KEY: ' ' }, 'the environment variable A_KEY is empty'],
  [{ A_KEY: 'can ary' }, 'the environment variable A_KEY has a key with spaces'],
  [{ A_KEY: 'canary\u0007' }, 'the environment variable A_KEY has a key with spaces'],
  [{ A_KEY: 'k'.repeat(8193) }, 'more than 8192 characters'],
])('the environment %j has no usable key', (environment, words) => {
  expect(() => readReferencedKey({ env: 'A_KEY' }, environment)).toThrow(words)
  expect(() => readReferencedKey({ env: 'A_KEY' }, environment)).not.toThrow(/can ?ary/)
})

test('an empty or absent file is named, with the reason', async () => {
  const file = await keyFile('\n')
  expect(() => readReferencedKey({ file }, {})).toThrow(new Error(`the file ${file} is empty`))
  const absent = `${file}-absent`
  const reason = new Error(`the file ${absent} cannot be read (ENOENT)`)
  expect(() => readReferencedKey({ file: absent }, {})).toThrow(reason)
})
