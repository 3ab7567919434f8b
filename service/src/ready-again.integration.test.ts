import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { mkdir, rename, rmdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { loadConfig } from './config.ts'
import { recognizeDatabase } from './installation/installation.ts'
import { migrate } from './platform/migrations.ts'
import { runMain, startMain } from './testing/processes/run-main.ts'
import { canMount, cannotMount, mountDisk } from './testing/processes/small-disk.ts'
import { redisUrl } from './testing/servers.ts'
import { createTestDatabase, openEmptyDatabase } from './testing/test-database.ts'
import { masterKey } from './testing/test-gateway.ts'

// What goes wrong while a process runs makes it unready, and it becomes ready again by itself.

type Main = ReturnType<typeof startMain>

const changesOf = (main: Main) =>
  main
    .lines()
    .filter(({ event }) => event === 'ready' || event === 'not_ready')
    .map(({ event, reasons }) => [event, reasons])

/** Waits until readiness, log and metric all say so. */
async function untilReadinessIs(main: Main, status: 200 | 503) {
  await waitUntil(async () => (await main.ask('/health/ready')).status === status)
  await waitUntil(() => changesOf(main).at(-1)?.[0] === (status === 200 ? 'ready' : 'not_ready'))
  const { text } = await main.ask('/metrics')
  const value = status === 200 ? 0 : 1
  expect(text).toContain(`\ngatehouse_state_directory_unusable ${value}\n`)
}

async function start(directory: string) {
  const database = await createTestDatabase({ waitMs: 20_000 })
  onTestFinished(() => database[Symbol.asyncDispose]())
  const main = startMain({ DATABASE_URL: database.url, STATE_DIRECTORY: directory })
  await main.line('listening')
  await untilReadinessIs(main, 200)
  return main
}

async function expectToStop(main: Main) {
  main.child.kill('SIGTERM')
  main.child.kill('SIGTERM')
  await main.outcome()
  expect(main.lines().at(-1)?.['event']).toMatch(/^stopped/)
}

test('a disk that fills up, and has room again', async (context) => {
  if (!canMount) context.skip(cannotMount)
  const directory = mountDisk('size=1m')
  const main = await start(directory)
  const ballast = join(directory, 'ballast')
  expect(() => writeFileSync(ballast, Buffer.alloc(2 * 1024 * 1024))).toThrow('ENOSPC')
  await untilReadinessIs(main, 503)
  rmSync(ballast)
  await untilReadinessIs(main, 200)
  // What a process says before it is ready for the first time depends on how fast it is.
  expect(changesOf(main).slice(-3)).toEqual([
    ['ready', undefined],
    ['not_ready', expect.stringContaining('its disk is full (ENOSPC)')],
    ['ready', undefined],
  ])
  await expectToStop(main)
})

test('a directory that is removed, and comes back', async () => {
  const parent = mkdtempSync(join(tmpdir(), 'gatehouse-later-'))
  onTestFinished(() => rmSync(parent, { recursive: true, force: true }))
  const directory = join(parent, 'state')
  const main = await start(directory)
  const lastReasons = () => changesOf(main).at(-1)?.[1] ?? ''
  // A write that is under way would fail in another way.
  await waitUntil(() => existsSync(join(directory, 'policies')))
  await rename(directory, join(parent, 'away'))
  await untilReadinessIs(main, 503)
  expect(lastReasons()).toContain('it does not exist (ENOENT)')
  await rename(join(parent, 'away'), directory)
  await untilReadinessIs(main, 200)
  // An empty one is what is left when a volume is unmounted.
  await rename(directory, join(parent, 'away'))
  await untilReadinessIs(main, 503)
  await mkdir(directory)
  await waitUntil(() => lastReasons().includes('was emptied, or its volume is not mounted'))
  await rmdir(directory)
  await rename(join(parent, 'away'), directory)
  await untilReadinessIs(main, 200)
  // Another database has taken it meanwhile.
  writeFileSync(join(directory, 'database'), '01936c3e-0000-7000-8000-000000000000\n')
  await untilReadinessIs(main, 503)
  expect(lastReasons()).toContain('belongs to another database')
  await expectToStop(main)
})

test('a master key that is found to be wrong when the database is there', async () => {
  const { db, url } = await openEmptyDatabase()
  const main = startMain({ DATABASE_URL: url })
  expect((await main.line('not_ready'))['reasons']).toMatch(/migrations are missing|database up/)
  await migrate(db)
  const { MASTER_KEYS } = loadConfig({ DATABASE_URL: url, MASTER_KEYS: masterKey(1) })
  // The process may have been faster: then the other key is the wrong one, which another test covers.
  const own = await recognizeDatabase(db, MASTER_KEYS)
  await waitUntil(() => {
    const [event, reasons = ''] = changesOf(main).at(-1) ?? []
    const isRefused = reasons.startsWith('MASTER_KEYS does not belong to this database')
    return own?.fault === null ? event === 'not_ready' && isRefused : event === 'ready'
  })
  await expectToStop(main)
})

test('several processes with a full disk give the reason once', async (context) => {
  if (!canMount) context.skip(cannotMount)
  const STATE_DIRECTORY = mountDisk('size=8k')
  const { code, stdout, stderr } = await runMain({
    STATE_DIRECTORY,
    PROCESSES: '2',
    REDIS_URL: redisUrl,
  })
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(
    /^gatehouse: STATE_DIRECTORY \(\S+\) cannot be used: its disk is full .*\n$/,
  )
})
