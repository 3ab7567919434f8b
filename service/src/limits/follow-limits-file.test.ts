import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'

import { followLimitsFile } from './follow-limits-file.ts'
import { limitsByTier } from './tiers.ts'

const fileWith = (requests: number) =>
  JSON.stringify({ free: { key: { requests_per_minute: requests } } })

async function follow() {
  const folder = await mkdtemp(join(tmpdir(), 'limits-'))
  const file = join(folder, 'limits.json')
  /** Renamed into place: a file that is being written is empty for a moment. */
  const write = async (text: string) => {
    await writeFile(`${file}.new`, text)
    await rename(`${file}.new`, file)
  }
  await write(fileWith(7))
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const options = { file, log, metrics: createMetrics() }
  const followed = followLimitsFile({ ...options, everyMs: 5 })
  onTestFinished(async () => {
    followed.stop()
    await rm(folder, { recursive: true })
  })
  const requests = () => followed.current().byTier.free.key.requests_per_minute
  const isStale = async () => (await options.metrics.limitsFileIsStale.get()).values[0]?.value
  return { file, write, lines, requests, isStale, options }
}

test('a changed file is in force within moments, without a restart', async () => {
  const { write, requests } = await follow()
  expect(requests()).toBe(7)
  await write(fileWith(8))
  await waitUntil(() => requests() === 8)
})

test('a file that cannot be used leaves the last good one in force, says so once, and recovers', async () => {
  const { file, write, lines, requests, isStale } = await follow()
  await write(fileWith(0))
  await waitUntil(() => lines.length > 0)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('limits_file_unusable')
  expect(lines[0]).toContain('free.key.requests_per_minute: must be at least 1')
  expect([requests(), await isStale()]).toEqual([7, 1])
  await rm(file)
  await waitUntil(() => lines.length === 2)
  expect(requests()).toBe(7)
  await write(fileWith(9))
  await waitUntil(() => requests() === 9)
  expect(await isStale()).toBe(0)
})

test('a process does not start with a bad file, an absent one or one of more than 64 KiB', async () => {
  const { file, write, options } = await follow()
  await write(fileWith(0))
  expect(() => followLimitsFile(options)).toThrow(
    `Bad limits in LIMITS_FILE (${file}):\n  free.key.requests_per_minute: must be at least 1`,
  )
  await write(`{}${' '.repeat(64 * 1024)}`)
  expect(() => followLimitsFile(options)).toThrow('is larger than 64 KiB')
  await rm(file)
  expect(() => followLimitsFile(options)).toThrow('ENOENT')
})

test('without a file the built-in table holds', async () => {
  const { options } = await follow()
  const followed = followLimitsFile({ ...options, file: undefined })
  expect(followed.current().byTier).toEqual(limitsByTier)
})
