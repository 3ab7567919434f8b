import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'

import { followSignInFile } from './follow-sign-in-file.ts'

const fileWith = (name: string) =>
  JSON.stringify({
    providers: [
      {
        id: 'corp',
        name,
        issuer: 'https://login.example.com',
        client_id: 'gatehouse',
        client_secret: { file: '/run/secrets/corp' },
      },
    ],
  })

async function follow() {
  const folder = await mkdtemp(join(tmpdir(), 'sign-in-'))
  const file = join(folder, 'sign-in.json')
  /** Renamed into place: a file that is being written is empty for a moment. */
  const write = async (text: string) => {
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
  await write(fileWith('First'))
  const lines: string[] = []
  const keys = { secret: 'first-secret' }
  const options = {
    file,
    readSecret: () => keys.secret,
    log: createLog('info', { write: (line) => lines.push(line) }),
    metrics: createMetrics(),
  }
  const followed = followSignInFile({ ...options, everyMs: 5 })
  onTestFinished(async () => {
    followed.stop()
    await rm(folder, { recursive: true })
  })
  const provider = () => followed.current().providers[0]
  const isStale = async () => (await options.metrics.signInFileIsStale.get()).values[0]?.value
  return { file, write, lines, keys, provider, isStale, options }
}

test('a changed file, and a secret replaced in its place, are in force within moments', async () => {
  const { write, provider, keys, lines } = await follow()
  expect(provider()?.name).toBe('First')
  await write(fileWith('Second'))
  await waitUntil(() => provider()?.name === 'Second')
  keys.secret = 'second-secret'
  await waitUntil(() => provider()?.clientSecret === 'second-secret')
  expect(lines.join('')).toContain('sign_in_file_changed')
  expect(lines.join('')).not.toContain('-secret')
})

test('a file that cannot be used leaves the last good one in force, says so once, and recovers', async () => {
  const { file, write, lines, provider, isStale } = await follow()
  await write(fileWith(''))
  await waitUntil(() => lines.length > 0)
  expect(lines[0]).toContain('sign_in_file_unusable')
  expect(lines[0]).toContain('providers[0].name: must have at least 1 character')
  expect([provider()?.name, await isStale()]).toEqual(['First', 1])
  await rm(file)
  await waitUntil(() => lines.length === 2)
  expect(provider()?.name).toBe('First')
  await write(fileWith('Third'))
  await waitUntil(() => provider()?.name === 'Third')
  expect(await isStale()).toBe(0)
})

test('a process does not start with a bad file or an absent one', async () => {
  const { file, write, options } = await follow()
  await write(fileWith(''))
  expect(() => followSignInFile(options)).toThrow(
    `Bad sign-in settings in SIGN_IN_FILE (${file}):\n  line 1: providers[0].name: must have at least 1 character`,
  )
  await rm(file)
  expect(() => followSignInFile(options)).toThrow('cannot be read (ENOENT); correct SIGN_IN_FILE')
})

test('without a file there is no provider', async () => {
  const { options } = await follow()
  expect(followSignInFile({ ...options, file: undefined }).current().providers).toEqual([])
})
