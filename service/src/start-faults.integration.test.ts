import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { loadConfig } from '#config.ts'

import { recognizeDatabase } from './installation/installation.ts'
import { canRunAs, runMain, startMain } from './testing/processes/run-main.ts'
import { canMount, cannotMount, mountDisk } from './testing/processes/small-disk.ts'
import { createTestDatabase, openEmptyDatabase } from './testing/test-database.ts'
import { masterKey } from './testing/test-gateway.ts'

// The table of docs/operations.md is what real processes print.

const page = await readFile(new URL('../../docs/operations.md', import.meta.url), 'utf8')
const [, section = ''] = page.split('### When a process does not start, or is not ready\n')
const rows = section
  .split('\n\n')
  .filter((block) => block.startsWith('| What is wrong'))
  .flatMap((block) => block.split('\n').slice(2))
  .map((line) => line.split('|').map((cell) => cell.trim()))
const messages = new Map(
  rows.map(([, what = '', effect = '', message = '']) => [what, { effect, message }]),
)

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-start-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

async function makeDatabase() {
  const database = await createTestDatabase({ waitMs: 20_000 })
  onTestFinished(() => database[Symbol.asyncDispose]())
  return { DATABASE_URL: database.url, db: database.db }
}

type Settings = Record<string, string>

/** As the table writes it: on one line, with places for what differs. */
const inTable = (text: string, path: string) =>
  text
    .replaceAll(path, '<path>')
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, '<id>')
    .replace(/of user \d+/, 'of user <id>')
    .replaceAll(/\n\s*/g, ' ')
    .trim()

const exits = (settings: () => Settings | Promise<Settings>, user?: number) => ({
  effect: 'exits',
  async print() {
    const given = await settings()
    const { code, stdout, stderr } = await runMain(given, user)
    expect([code, stdout]).toEqual([1, ''])
    const { STATE_DIRECTORY, MODELS_FILE, MODERATION_FILE } = given
    const text = inTable(stderr, MODERATION_FILE ?? MODELS_FILE ?? STATE_DIRECTORY ?? '<none>')
    return `\`${text.replace(/^gatehouse: /, '')}\``
  },
})

const isNotReady = (settings: () => Promise<Settings>) => ({
  effect: 'is not ready',
  async print(expected: string) {
    const given = await settings()
    const main = startMain(given)
    await main.line('not_ready')
    const find = async () => (await main.line('not_ready'))['reasons'] ?? ''
    const asRow = (reasons: string) =>
      `\`${inTable(reasons, given['STATE_DIRECTORY'] ?? '<none>')}\``
    // The reasons change while a process starts.
    await waitUntil(async () => asRow(await find()) === expected).catch(() => undefined)
    const reasons = await find()
    const { status, text } = await main.ask('/health/ready')
    expect([status, JSON.parse(text)]).toEqual([503, { status: 'unavailable', reasons: [reasons] }])
    await stop(main)
    return asRow(reasons)
  },
})

async function stop(main: ReturnType<typeof startMain>) {
  main.child.kill('SIGKILL')
  await main.outcome()
}

async function useForeignDirectory(): Promise<Settings> {
  const { db, DATABASE_URL } = await makeDatabase()
  await sql`update installation set id = gen_random_uuid()`.execute(db)
  const STATE_DIRECTORY = makeFolder()
  writeFileSync(join(STATE_DIRECTORY, 'database'), '01936c3e-0000-7000-8000-000000000000\n')
  return { DATABASE_URL, STATE_DIRECTORY }
}

async function useWrongKey(): Promise<Settings> {
  const { db, DATABASE_URL } = await makeDatabase()
  const { MASTER_KEYS } = loadConfig({ DATABASE_URL, MASTER_KEYS: masterKey(1) })
  expect(await recognizeDatabase(db, MASTER_KEYS)).toMatchObject({ fault: null })
  return { DATABASE_URL }
}

const catalogue = (text: string) => {
  const folder = makeFolder()
  writeFileSync(join(folder, 'models.json'), text)
  return { MODELS_FILE: join(folder, 'models.json'), STATE_DIRECTORY: folder }
}

/** Root may write everywhere. */
const otherUser = process.getuid?.() === 0 ? 65_534 : undefined

const cases: Record<
  string,
  {
    effect: string
    print(expected: string): Promise<string>
    needsMount?: boolean
    needsUser?: number | undefined
  }
> = {
  '`STATE_DIRECTORY` is full': {
    ...exits(() => ({ STATE_DIRECTORY: mountDisk('size=8k') })),
    needsMount: true,
  },
  '`STATE_DIRECTORY` is full, and charges wait there': {
    ...isNotReady(async () => {
      const STATE_DIRECTORY = mountDisk('size=8k')
      writeFileSync(join(STATE_DIRECTORY, 'unbilled-settlements-1'), 'damaged')
      return { DATABASE_URL: (await makeDatabase()).DATABASE_URL, STATE_DIRECTORY }
    }),
    needsMount: true,
  },
  '`STATE_DIRECTORY` is missing and cannot be created': {
    ...exits(() => ({ STATE_DIRECTORY: '/gatehouse-test/state' }), otherUser),
    needsUser: otherUser,
  },
  '`STATE_DIRECTORY` is read-only': {
    ...exits(() => ({ STATE_DIRECTORY: mountDisk('ro') })),
    needsMount: true,
  },
  '`STATE_DIRECTORY` is a file': exits(() => {
    const file = join(makeFolder(), 'file')
    writeFileSync(file, '')
    return { STATE_DIRECTORY: file }
  }),
  // A process that looked there used to hear no signal any more.
  '`STATE_DIRECTORY` is special': exits(() => ({ STATE_DIRECTORY: '/proc/gatehouse' })),
  "`STATE_DIRECTORY` is another database's": exits(useForeignDirectory),
  "`MASTER_KEYS` is another database's": exits(useWrongKey),
  '`MODELS_FILE` is missing': exits(() => ({
    MODELS_FILE: '/nowhere/at/all',
    STATE_DIRECTORY: makeFolder(),
  })),
  '`MODELS_FILE` is not JSON': exits(() => catalogue('{')),
  '`MODERATION_FILE` is missing': exits(() => ({ MODERATION_FILE: '/nowhere/at/all' })),
  'no `MODERATION_FILE`, with `MODELS_FILE`': isNotReady(async () => ({
    DATABASE_URL: (await makeDatabase()).DATABASE_URL,
    ...catalogue('{"upstreams":{},"models":[]}'),
  })),
  'the database is away': isNotReady(async () => ({
    DATABASE_URL: 'postgres://127.0.0.1:1/gatehouse',
  })),
  'the database is not migrated': isNotReady(async () => ({
    DATABASE_URL: (await openEmptyDatabase()).url,
  })),
  'a second process, no `REDIS_URL`': isNotReady(async () => {
    const { DATABASE_URL } = await makeDatabase()
    await startMain({ DATABASE_URL }).line('ready')
    return { DATABASE_URL }
  }),
  'Redis is away': {
    effect: 'is ready, with its share of the limits',
    async print() {
      const { DATABASE_URL } = await makeDatabase()
      const main = startMain({ DATABASE_URL, REDIS_URL: 'redis://127.0.0.1:1' })
      await main.line('ready')
      const { what } = await main.line('redis_away')
      expect((await main.ask('/health/ready')).status).toBe(200)
      await stop(main)
      return `\`${what}\` in the log`
    },
  },
}

test('the table has a row for each of these faults', () => {
  expect([...messages.keys()]).toEqual(Object.keys(cases))
})

test.for(Object.entries(cases))('%s', async ([what, { effect, print, ...needs }], context) => {
  if (needs.needsMount && !canMount) context.skip(cannotMount)
  if (needs.needsUser !== undefined && !canRunAs(needs.needsUser)) {
    context.skip(`needs a checkout that user ${needs.needsUser} may read`)
  }
  const expected = messages.get(what)
  expect({ effect, message: await print(expected?.message ?? '') }).toEqual(expected)
})
