import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { sql } from 'kysely'
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest'

import { systemClock } from '#platform/clock.ts'
import { connectDatabase } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { deriveKeys } from '#platform/secrets.ts'
import { createTrustedFiles } from '#platform/trusted-file.ts'
import { silentLog } from '#testing/silent-log.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { createDatabaseProxy } from '#testing/test-gateway.ts'

import { createEventWriter } from './event-writer.ts'
import { buildCallEvent } from './event.ts'

// The events of calls without a settlement, across outages of the database and of the disk.

let database: Awaited<ReturnType<typeof createTestDatabase>>
let proxy: Awaited<ReturnType<typeof createDatabaseProxy>>
let folder: string

beforeEach(async () => {
  database = await createTestDatabase()
  proxy = await createDatabaseProxy(database.url)
  folder = await mkdtemp(join(tmpdir(), 'gatehouse-events-'))
})
afterEach(async () => {
  await proxy[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
  await rm(folder, { recursive: true, force: true })
})

const keys = deriveKeys([{ version: 1, bytes: Buffer.alloc(32, 7) }], 'file-authentication')

function startWriter() {
  const db = connectDatabase({ url: proxy.url, poolSize: 2, lockTimeoutMs: 200 })
  const files = createTrustedFiles({ directory: folder, now: systemClock, keys })
  const disk = { isFull: false }
  const keep: typeof files.keep = async (...args) => {
    if (disk.isFull) throw Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
    return files.keep(...args)
  }
  const writer = createEventWriter({
    db,
    files: { ...files, keep },
    hasFolder: true,
    mayDeliver: () => true,
    now: systemClock,
    log: silentLog,
    metrics: createMetrics(),
  })
  const stop = async () => {
    await writer.stop()
    await db.destroy()
  }
  return { writer, disk, stop }
}

const eventOf = (requestId: string) =>
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

async function readIds(): Promise<string[]> {
  const { rows } = await sql<{ id: string }>`
    select header->>'request_id' as id from event order by 1`.execute(database.db)
  return rows.map(({ id }) => id)
}

const eventually = { timeout: 15_000, interval: 50 }

test('an event is committed when it is written, and many go into few statements', async () => {
  const { writer, stop } = startWriter()
  onTestFinished(stop)
  const ids = Array.from({ length: 700 }, (_, index) => `req_${String(index).padStart(3, '0')}`)
  await Promise.all(ids.map((id) => writer.write(eventOf(id))))
  expect(await readIds()).toEqual(ids)
  const { rows } = await sql<{ count: number }>`
    select count(distinct xid)::int as count from event`.execute(database.db)
  expect(rows[0]?.count).toBeLessThan(10)
})

test('while the database is away it is on disk, and committed once when the database is back', async () => {
  const { writer, stop } = startWriter()
  onTestFinished(stop)
  await proxy.shut()
  await writer.write(eventOf('req_1'))
  expect(await readdir(folder)).toEqual([expect.stringMatching(/^events-/)])
  expect(writer.canTakeMore()).toBe(true)
  await proxy.reopen()
  await expect.poll(() => readdir(folder), eventually).toEqual([])
  expect(await readIds()).toEqual(['req_1'])
})

test('with a full disk too, no call may begin until the event is written', async () => {
  const { writer, disk, stop } = startWriter()
  onTestFinished(stop)
  await proxy.shut()
  disk.isFull = true
  await writer.write(eventOf('req_1'))
  expect(writer.canTakeMore()).toBe(false)
  await proxy.reopen()
  await expect.poll(() => writer.canTakeMore(), eventually).toBe(true)
  expect(await readIds()).toEqual(['req_1'])
})

test('an event that the database refuses does not keep its neighbours from being written', async () => {
  const { writer, stop } = startWriter()
  onTestFinished(stop)
  const refused = { ...eventOf('req_bad'), payloadHash: Buffer.alloc(1) }
  const others = Array.from({ length: 20 }, (_, index) => eventOf(`req_${index}`))
  await Promise.all([...others.slice(0, 10), refused, ...others.slice(10)].map(writer.write))
  expect(await readIds()).toHaveLength(20)
  expect(await readdir(folder)).toHaveLength(1)
})

test('stopping waits for events that are being written', async () => {
  const { writer, stop } = startWriter()
  const writing = Array.from({ length: 50 }, (_, index) => writer.write(eventOf(`req_${index}`)))
  await stop()
  await Promise.all(writing)
  expect(await readIds()).toHaveLength(50)
  expect(await readdir(folder)).toEqual([])
})
