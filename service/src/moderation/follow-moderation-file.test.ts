import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'

import { followModerationFile } from './follow-moderation-file.ts'
import type { ModerationSettings } from './read-moderation.ts'

const fileWith = (deadlineMs: number) =>
  JSON.stringify({
    scorers: [
      {
        name: 'guard',
        adapter: 'llama_guard',
        base_url: 'http://guard.internal:8000',
        model: 'guard',
        key: { file: '/run/secrets/guard' },
        deadline_ms: deadlineMs,
      },
    ],
  })

async function follow() {
  const folder = await mkdtemp(join(tmpdir(), 'moderation-'))
  const file = join(folder, 'moderation.json')
  /** Renamed into place: a file that is being written is empty for a moment. */
  const write = async (text: string) => {
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
  await write(fileWith(700))
  const lines: string[] = []
  const taken: ModerationSettings[] = []
  const keys = { secret: 'first-key' }
  const options = {
    file,
    allowsTestDoubles: false,
    readSecret: () => keys.secret,
    log: createLog('info', { write: (line) => lines.push(line) }),
    metrics: createMetrics(),
    onSettings: (settings: ModerationSettings) => void taken.push(settings),
  }
  const followed = followModerationFile({ ...options, everyMs: 5 })
  onTestFinished(async () => {
    followed.stop()
    await rm(folder, { recursive: true })
  })
  const deadline = () => taken.at(-1)?.scorers[0]?.deadlineMs
  const isStale = async () => (await options.metrics.moderationFileIsStale.get()).values[0]?.value
  return { file, write, lines, taken, keys, deadline, isStale, options }
}

const aMoment = () => new Promise((resolve) => setTimeout(resolve, 50))

test('a changed file is in force within moments, and an unchanged one is not taken again', async () => {
  const { write, taken, deadline, lines } = await follow()
  await aMoment()
  expect([deadline(), taken.length]).toEqual([700, 1])
  await write(fileWith(800))
  await waitUntil(() => deadline() === 800)
  expect(lines.join('')).toContain('moderation_file_changed')
})

test('a key that was replaced in its place is used within moments', async () => {
  const { taken, keys, lines } = await follow()
  keys.secret = 'second-key'
  await waitUntil(() => taken.at(-1)?.scorers[0]?.place?.secret === 'second-key')
  expect(lines.join('')).not.toContain('second-key')
})

test('a file that cannot be used leaves the last good one in force, says so once, and recovers', async () => {
  const { file, write, lines, deadline, isStale } = await follow()
  await write(fileWith(0))
  await waitUntil(() => lines.length > 0)
  await aMoment()
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('moderation_file_unusable')
  expect(lines[0]).toContain('scorers[0].deadline_ms: must be at least 50')
  expect([deadline(), await isStale()]).toEqual([700, 1])
  await rm(file)
  await waitUntil(() => lines.length === 2)
  expect(deadline()).toBe(700)
  await write(fileWith(700))
  await waitUntil(async () => (await isStale()) === 0)
  await write(fileWith(900))
  await waitUntil(() => deadline() === 900)
})

test('a process does not start with a bad file, an absent one or one of more than 64 KiB', async () => {
  const { file, write, options } = await follow()
  await write(fileWith(0))
  expect(() => followModerationFile(options)).toThrow(
    `Bad moderation settings in MODERATION_FILE (${file}):\n  line 1: scorers[0].deadline_ms: must be at least 50`,
  )
  await write(`{}${' '.repeat(64 * 1024)}`)
  expect(() => followModerationFile(options)).toThrow('is larger than 64 KiB')
  await rm(file)
  expect(() => followModerationFile(options)).toThrow(
    'cannot be read (ENOENT); correct MODERATION_FILE, or write the file as docs/moderation.md shows: the shortest is {"accept_local_only": true}, for trying it out',
  )
})

test('without a file there is no scorer', async () => {
  const { options, taken } = await follow()
  followModerationFile({ ...options, file: undefined })
  expect(taken.at(-1)).toMatchObject({ scorers: [], judge: null, acceptsLocalOnly: false })
})
