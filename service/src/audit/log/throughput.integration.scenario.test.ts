import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { sizeOf } from '@gatehouse/tools/testing/size-of'
import { startThrowawayPostgres } from '@gatehouse/tools/throwaway-postgres'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import { createEventWriter } from '#audit/event-writer.ts'
import { buildCallEvent, type Event } from '#audit/event.ts'
import { systemClock } from '#platform/clock.ts'
import { connectDatabase, type Db } from '#platform/database.ts'
import { createMetrics } from '#platform/metrics.ts'
import { migrate } from '#platform/migrations.ts'
import { deriveKeys } from '#platform/secrets.ts'
import { createTrustedFiles } from '#platform/trusted-file.ts'
import { silentLog } from '#testing/silent-log.ts'

import { sequenceEvents } from './sequence-events.ts'

// How many events in a second are committed durably: through the writer, which puts those into one statement that arrive while
// another runs, and with a statement for each. And how many get their numbers. Everything is measured in turns on one server; the
// machine is shared, so the best window of each counts (noise only ever takes away).

const inFlight = 64
const windowMs = 1500
const windowsMin = 2
const windowsMax = 6
const backlog = sizeOf({ usual: 12_000, long: 30_000, variable: 'AUDIT_BACKLOG' })
const ratioMin = 3

/** The servers of the tests do not wait for a disk; this one does. */
async function openDurable(): Promise<Db> {
  const postgres = await startThrowawayPostgres({ shared_buffers: '128MB' })
  const db = connectDatabase({
    url: postgres.url,
    poolSize: 16,
    statementTimeoutMs: 0,
    connectTimeoutMs: 30_000,
  })
  onTestFinished(async () => {
    await db.destroy()
    await postgres.stop()
  })
  await migrate(db)
  return db
}

async function openWriter(db: Db) {
  const directory = await mkdtemp(join(tmpdir(), 'gatehouse-events-'))
  onTestFinished(() => rm(directory, { recursive: true, force: true }))
  const keys = deriveKeys([{ version: 1, bytes: Buffer.alloc(32, 7) }], 'file-authentication')
  const metrics = createMetrics()
  const writer = createEventWriter({
    db,
    files: createTrustedFiles({ directory, now: systemClock, keys }),
    hasFolder: true,
    mayDeliver: () => true,
    now: systemClock,
    log: silentLog,
    metrics,
  })
  onTestFinished(writer.stop)
  return writer
}

let made = 0
const eventOf = (organizations: number) =>
  buildCallEvent(
    {
      organizationId: `org_${made++ % organizations}`,
      requestId: `req_${made}`,
      projectId: 'proj_1',
      actor: 'key_1',
      actorType: 'project_key',
      model: 'model-1',
      target: 'messages',
      outcome: 'refused',
      refusal: { status: 400, code: 'invalid_request' },
      usage: { credits: 0 },
      policies: null,
    },
    new Date(),
  )

/** Events in a second. */
async function measureWriting(write: (event: Event) => Promise<void>, organizations: number) {
  const startedMs = performance.now()
  let done = 0
  const caller = async () => {
    while (performance.now() - startedMs < windowMs) {
      await write(eventOf(organizations))
      done++
    }
  }
  await Promise.all(Array.from({ length: inFlight }, caller))
  return Math.round((done * 1000) / (performance.now() - startedMs))
}

async function numberAllEvents(db: Db) {
  let numbered = 0
  for (;;) {
    const { events } = await sequenceEvents(db)
    if (events === 0) return numbered
    numbered += events
  }
}

/** Events in a second, while workers number what was written before they started. */
async function measureNumbering(db: Db, organizations: number, workers = 1) {
  await numberAllEvents(db)
  for (let written = 0; written < backlog; written += 500) {
    await insertEvents(
      db,
      Array.from({ length: 500 }, () => eventOf(organizations)),
    )
  }
  const startedMs = performance.now()
  const numbered = await Promise.all(Array.from({ length: workers }, () => numberAllEvents(db)))
  const seconds = (performance.now() - startedMs) / 1000
  expect(numbered.reduce((sum, each) => sum + each)).toBe(backlog)
  return Math.round(backlog / seconds)
}

test(`${inFlight} events in flight: ${ratioMin} times as many as with a statement for each`, async () => {
  const db = await openDurable()
  const writer = await openWriter(db)
  await measureWriting(writer.write, 1)
  const windows: { together: number; each: number }[] = []
  const best = (kind: 'together' | 'each') => Math.max(...windows.map((window) => window[kind]))
  const isEnough = () => best('together') >= ratioMin * best('each')
  while (windows.length < windowsMin || (windows.length < windowsMax && !isEnough())) {
    windows.push({
      together: await measureWriting(writer.write, 1),
      each: await measureWriting((event) => insertEvents(db, [event]), 1),
    })
  }
  console.table(windows)
  const ratio = best('together') / best('each')
  console.log(
    `durable events in a second: ${best('together')} and ${best('each')}, ${ratio.toFixed(1)} times`,
  )
  expect(ratio).toBeGreaterThanOrEqual(ratioMin)
}, 120_000)

test.each([1, 1000])(
  'events of %i organizations get their numbers at least as fast as they are written',
  async (organizations) => {
    const db = await openDurable()
    const writer = await openWriter(db)
    await measureWriting(writer.write, organizations)
    const windows: { written: number; numbered: number }[] = []
    const best = (kind: 'written' | 'numbered') =>
      Math.max(...windows.map((window) => window[kind]))
    const isEnough = () => best('numbered') >= best('written')
    while (windows.length < windowsMin || (windows.length < windowsMax && !isEnough())) {
      windows.push({
        written: await measureWriting(writer.write, organizations),
        numbered: await measureNumbering(db, organizations),
      })
    }
    console.table(windows)
    const byTwo = await measureNumbering(db, organizations, 2)
    console.log(
      `of ${organizations} organizations, in a second: ${best('written')} written, ${best('numbered')} numbered, ${byTwo} by two workers`,
    )
    const { rows } = await sql`
      select from event left join audit_log on event_id = id where event_id is null limit 1`.execute(
      db,
    )
    expect(rows).toEqual([])
    expect(best('numbered')).toBeGreaterThanOrEqual(best('written'))
  },
  300_000,
)
