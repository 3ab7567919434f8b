import { replayExport, testExport, updateExport } from '@gatehouse/contract/exports/export-sink'
import type { SinkConfig } from '@gatehouse/contract/exports/sink-config'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import type { DestinationType } from '#exports/destinations/destination.ts'
import { openSinkConfig } from '#exports/sinks/open-config.ts'
import { sinkCalls } from '#exports/sinks/testing/sink-calls.ts'
import { createSecretBox } from '#platform/secrets.ts'

import { deliverBatch } from './deliver-batch.ts'
import { changeCursor, leaseCursors, LeaseLost } from './lease-store.ts'
import { caughtUp, openDelivery, type TestDelivery } from './testing/test-delivery.ts'

const wanted = { isFailing: false, limit: 10, perOrganization: 10 }
const leased = async ({ api }: TestDelivery) => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from export_cursor where lease_until is not null`.execute(
    api.db,
  )
  return rows[0]?.count
}

test('a worker whose lease has ended cannot write under the next one, even if that is its own', async () => {
  const { api, createSink, write } = await openDelivery()
  await createSink('webhook')
  await write(1)
  const [first] = await leaseCursors(api.db, wanted)
  await sql`update export_cursor set lease_until = now()`.execute(api.db)
  const [second] = await leaseCursors(api.db, wanted)
  expect(second?.cursorId).toBe(first?.cursorId)
  await expect(changeCursor(api.db, first!, { orgSeq: 7 })).rejects.toThrow(LeaseLost)
  await changeCursor(api.db, second!, {})
})

test('a batch that takes longer than its time counts as a failure', async () => {
  const { api, createSink, write, readSink } = await openDelivery()
  const id = await createSink('webhook')
  await write(1)
  const [lease] = await leaseCursors(api.db, wanted)
  const { destinations } = api.house.exports
  const step = await deliverBatch(lease!, {
    db: api.db,
    destination: destinations.webhook as DestinationType<SinkConfig>,
    config: openSinkConfig(lease!.sink, api.house.mutations.secretBox),
    calls: {
      request: () => Promise.reject(new Error('aborted')),
      now: api.house.now,
      signal: AbortSignal.abort(),
    },
    stopping: new AbortController().signal,
    onSent: () => undefined,
  })
  expect(step.isReleased).toBe(true)
  expect(await readSink(id)).toMatchObject({
    state: 'retrying',
    last_error: 'The destination did not take the batch in time.',
  })
})

test('a worker that stops ends the calls that hang and gives its cursors back, and another one goes on at once', async () => {
  const delivery = await openDelivery()
  const { doubles, createSink, write, startWorker, readSink, numbersOf } = delivery
  const ids = []
  for (let count = 0; count < 4; count++) ids.push(await createSink('splunk_hec'))
  await write(10)
  let calls = 0
  doubles.splunk_hec.double.intervene(() => (calls++ < 4 ? 'hang' : undefined))
  const worker = startWorker({})
  await expect.poll(() => calls, caughtUp).toBe(4)
  const startedAtMs = performance.now()
  await worker.stop()
  expect(performance.now() - startedAtMs).toBeLessThan(1500)
  expect(await leased(delivery)).toBe(0)
  for (const id of ids) expect(await readSink(id)).toMatchObject({ state: 'ok', last_error: null })
  startWorker()
  for (const id of ids)
    await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  expect(new Set(numbersOf('splunk_hec')).size).toBe(Math.max(...numbersOf('splunk_hec')))
})

test('a sink that is disabled while a batch is sent gets no more', async () => {
  const delivery = await openDelivery()
  const { api, doubles, createSink, write, startWorker } = delivery
  const id = await createSink('webhook')
  await write(1500)
  const edit = (body: object) => api.send(updateExport, { params: { export_id: id }, body })
  let disabled: Promise<unknown> | undefined
  let requests = 0
  startWorker({
    request: async () => {
      requests += 1
      await (disabled ??= edit({ enabled: false }))
      return { status: 200, headers: {}, body: Buffer.from('') }
    },
  })
  await expect.poll(() => requests, caughtUp).toBe(1)
  await expect.poll(() => leased(delivery), caughtUp).toBe(0)
  await new Promise((resolve) => setTimeout(resolve, 1200))
  expect(requests).toBe(1)
  expect(doubles.webhook.double.received).toEqual([])
})

test('what went wrong before a sink was changed does not delay it afterwards', async () => {
  const delivery = await openDelivery()
  const { api, doubles, createSink, write, startWorker, readSink } = delivery
  const id = await createSink('datadog_logs')
  await write(1)
  let edited: Promise<unknown> | undefined
  const edit = () =>
    api.send(updateExport, {
      params: { export_id: id },
      body: { config: { service: 'changed' } },
    })
  doubles.datadog_logs.double.intervene(() => {
    if (edited) return undefined
    edited = edit()
    return 'hang'
  })
  startWorker()
  await expect
    .poll(() => readSink(id), { ...caughtUp, timeout: 8000 })
    .toMatchObject({ state: 'ok', pending_events: 0, last_error: null })
})

test('a sink that is deleted while a batch is sent leaves nothing behind', async () => {
  const delivery = await openDelivery()
  const { api, createSink, write, startWorker } = delivery
  const id = await createSink('elastic')
  await write(3)
  const problems: string[] = []
  const log = { ...api.house.log, problem: (code: string) => void problems.push(code) }
  let requests = 0
  startWorker({
    log,
    request: async () => {
      requests += 1
      await sql`delete from export_sink where id = ${id}`.execute(api.db)
      const items = [{ status: 400, error: { type: 'x' } }, { status: 429 }, { status: 201 }]
      const body = Buffer.from(JSON.stringify({ items: items.map((create) => ({ create })) }))
      return { status: 200, headers: {}, body }
    },
  })
  await expect.poll(() => requests, caughtUp).toBe(1)
  await new Promise((resolve) => setTimeout(resolve, 700))
  expect(problems).toEqual([])
})

test('a sink whose secrets no master key opens shows that, and the others go on', async () => {
  const { api, doubles, createSink, write, startWorker, readSink } = await openDelivery()
  const [lost, other] = [await createSink('webhook'), await createSink('splunk_hec')]
  const stranger = createSecretBox([{ version: 9, bytes: Buffer.alloc(32, 1) }])
  const sealed = stranger.seal(Buffer.from('{}'), 'x')
  await sql`update export_sink set secrets = ${sealed} where id = ${lost}`.execute(api.db)
  await write(2)
  startWorker()
  const last_error = 'Its secrets cannot be opened with the configured MASTER_KEYS.'
  await expect.poll(() => readSink(lost), caughtUp).toMatchObject({ state: 'error', last_error })
  await expect.poll(() => readSink(other), caughtUp).toMatchObject({ pending_events: 0 })
  const { rows } = await sql<{ seconds: number }>`
    select extract(epoch from next_at - now())::float8 as seconds from export_cursor
    where sink_id = ${lost}`.execute(api.db)
  expect(rows[0]?.seconds).toBeGreaterThan(200)
  const tested = await api.send(testExport, { params: { export_id: lost } })
  expect([tested.status, tested.body]).toMatchObject([200, { delivered: false, error: last_error }])
  const { edit } = sinkCalls(api)
  expect((await edit(lost, { label: 'Lost' })).export).toMatchObject({ label: 'Lost' })
  const { endpoint, secret } = doubles.webhook.config as Record<string, unknown>
  const { status, error } = await edit(lost, { config: { endpoint } })
  expect([status, error.code, error.param]).toEqual([422, 'missing_field', 'body.config.secret'])
  expect((await edit(lost, { config: { secret } })).status).toBe(200)
  await expect.poll(() => readSink(lost), caughtUp).toMatchObject({ state: 'ok' })
})

test('a replay of a sink that is disabled waits until it is enabled', async () => {
  const { api, createSink, write, startWorker, readSink, idsOf } = await openDelivery()
  const id = await createSink('splunk_hec')
  startWorker()
  const [event] = await write(1)
  await expect.poll(() => idsOf('splunk_hec'), caughtUp).toContain(event!.id)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  const params = { export_id: id }
  await api.send(updateExport, { params, body: { enabled: false } })
  await api.send(replayExport, { params, body: { from: event!.at.toISOString() } })
  const times = () => idsOf('splunk_hec').filter((each) => each === event!.id).length
  await new Promise((resolve) => setTimeout(resolve, 1200))
  expect(times()).toBe(1)
  await api.send(updateExport, { params, body: { enabled: true } })
  await expect.poll(times, caughtUp).toBe(2)
})
