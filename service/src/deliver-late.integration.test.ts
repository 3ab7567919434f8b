import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { writeEvents } from './audit/event-record.ts'
import { buildCallEvent } from './audit/event.ts'
import { loadConfig } from './config.ts'
import { systemClock } from './platform/clock.ts'
import { deriveKeys } from './platform/secrets.ts'
import { createTrustedFiles } from './platform/trusted-file.ts'
import { masterKeys, startMain } from './testing/processes/run-main.ts'
import { canMount, cannotMount, mountDisk } from './testing/processes/small-disk.ts'
import { createTestDatabase } from './testing/test-database.ts'
import { createDatabaseProxy } from './testing/test-gateway.ts'

// What waits in STATE_DIRECTORY reaches the database that it belongs to, and no other.

const makeEvent = (requestId: string) =>
  buildCallEvent(
    {
      organizationId: 'org_1',
      requestId,
      projectId: null,
      actor: 'key_1',
      actorType: 'project_key',
      model: null,
      target: 'messages',
      outcome: 'refused',
      refusal: { status: 400, code: 'invalid_request' },
      usage: { credits: 0 },
      policies: null,
    },
    new Date(),
  )

/** Events that wait in the directory. */
async function keepEvents(directory: string, count: number) {
  const { MASTER_KEYS } = loadConfig({ DATABASE_URL: 'postgres://x/x', MASTER_KEYS: masterKeys })
  const keys = deriveKeys(MASTER_KEYS, 'file-authentication')
  const files = createTrustedFiles({ directory, now: systemClock, keys })
  const events = Array.from({ length: count }, (_, index) => makeEvent(`req_${index}`))
  await files.keep('events-1', writeEvents(events))
  const isWaiting = async () => (await readdir(directory)).includes('events-1')
  return { isWaiting }
}

async function makeDatabase() {
  const database = await createTestDatabase({ waitMs: 20_000 })
  onTestFinished(() => database[Symbol.asyncDispose]())
  const { rows } = await sql<{ id: string }>`select id::text as id from installation`.execute(
    database.db,
  )
  const countEvents = async () => (await sql`select from event`.execute(database.db)).rows.length
  return { ...database, id: rows[0]!.id, countEvents }
}

test.each(['api', 'worker'])(
  'ROLES=%s: the database was away at the start, and turns out to be another one',
  async (ROLES) => {
    const directory = mkdtempSync(join(tmpdir(), 'gatehouse-late-'))
    onTestFinished(() => rmSync(directory, { recursive: true, force: true }))
    const { isWaiting } = await keepEvents(directory, 1)
    const markWith = (id: string) => writeFileSync(join(directory, 'database'), `${id}\n`)
    markWith('01936c3e-0000-7000-8000-000000000000')
    const database = await makeDatabase()
    await using proxy = await createDatabaseProxy(database.url)
    await proxy.shut()
    const main = startMain({ DATABASE_URL: proxy.url, STATE_DIRECTORY: directory, ROLES })
    // It runs by now: it has met the database that is away.
    await waitUntil(() => main.lines().length > 0)
    await proxy.reopen()
    const { reason = '', message = '' } = await main.line('state_directory_unusable')
    expect(reason + message).toContain('belongs to another database')
    await sleep(2500) // backlogs try again every second
    expect([await isWaiting(), await database.countEvents()]).toEqual([true, 0])
    // Now that it is the directory of this database, the event is delivered.
    markWith(database.id)
    await waitUntil(async () => !(await isWaiting()))
    expect(await database.countEvents()).toBe(1)
    main.child.kill('SIGKILL')
    await main.outcome()
  },
)

test('a process that starts with a disk full of events delivers them and makes room', async (context) => {
  if (!canMount) context.skip(cannotMount)
  const directory = mountDisk('size=512k')
  const { isWaiting } = await keepEvents(directory, 400)
  const ballast = Buffer.alloc(1024 * 1024)
  expect(() => writeFileSync(join(directory, 'ballast'), ballast)).toThrow('ENOSPC')
  const database = await makeDatabase()
  const main = startMain({ DATABASE_URL: database.url, STATE_DIRECTORY: directory })
  await main.line('ready')
  const problem = await main.line('state_directory_unusable')
  expect(JSON.stringify(problem)).toContain('its disk is full (ENOSPC)')
  expect([await isWaiting(), await database.countEvents()]).toEqual([false, 400])
  main.child.kill('SIGKILL')
  await main.outcome()
})
