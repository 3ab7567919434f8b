import {
  listExportDeadLetters,
  replayExport,
  requeueExportDeadLetters,
  updateExport,
} from '@gatehouse/contract/exports/export-sink'
import { sinkTypes } from '@gatehouse/contract/exports/sink-config'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { publishKeys, signCheckpoints } from '#audit/log/sign-checkpoints.ts'
import { createSigningKey } from '#audit/log/signing-keys.ts'

import { caughtUp, openDelivery } from './testing/test-delivery.ts'

const keys = [createSigningKey({ version: 1, bytes: Buffer.alloc(32, 7) })] as const

test('every type of destination gets every event in order, and the checkpoint after them', async () => {
  const { api, createSink, doubles, readSink, startWorker, write } = await openDelivery()
  const ids = await Promise.all(sinkTypes.map((type) => createSink(type)))
  await write(1200)
  await publishKeys({ ...api.house, keys })
  await signCheckpoints({ ...api.house, keys })
  startWorker()
  for (const [at, type] of sinkTypes.entries()) {
    await expect
      .poll(() => doubles[type].double.received.at(-1)?.['event_type'], caughtUp)
      .toBe('checkpoint')
    const { received, problems } = doubles[type].double
    const events = received.filter((record) => record['event_type'] !== 'checkpoint')
    const first = Number(events[0]?.['org_seq'])
    // Those of the organization's own sinks, as far as they were created later, come first.
    expect([type, events.map((record) => record['org_seq'])]).toEqual([
      type,
      Array.from({ length: events.length }, (_, index) => first + index),
    ])
    expect(events.length).toBeGreaterThanOrEqual(1200)
    expect([type, problems]).toEqual([type, []])
    await expect
      .poll(() => readSink(ids[at]!), caughtUp)
      .toMatchObject({
        state: 'ok',
        pending_events: 0,
        lag_seconds: 0,
        last_error: null,
        last_success_at: expect.any(String),
      })
  }
})

test('a destination that is away delays no other and catches up when it is back', async () => {
  const { api, createSink, doubles, idsOf, numbersOf, readSink, startWorker, write } =
    await openDelivery()
  const [dead, healthy] = [await createSink('splunk_hec'), await createSink('elastic')]
  doubles.splunk_hec.double.intervene(() => 'reset')
  startWorker()
  await write(300)
  await expect.poll(() => idsOf('elastic').length, caughtUp).toBeGreaterThanOrEqual(300)
  await expect
    .poll(() => readSink(dead), caughtUp)
    .toMatchObject({ state: 'retrying', last_error: 'The destination closed the connection.' })
  expect((await readSink(dead)).pending_events).toBeGreaterThanOrEqual(300)
  expect(await readSink(healthy)).toMatchObject({ state: 'ok', pending_events: 0 })
  doubles.splunk_hec.double.intervene(undefined)
  await sql`update export_cursor set next_at = now()`.execute(api.db)
  await expect
    .poll(() => readSink(dead), caughtUp)
    .toMatchObject({ state: 'ok', pending_events: 0 })
  const numbers = numbersOf('splunk_hec')
  expect(numbers).toEqual(numbers.map((_, at) => numbers[0]! + at))
})

test('a configuration that is refused waits until it is changed', async () => {
  const { api, createSink, doubles, readSink, startWorker, write } = await openDelivery()
  const id = await createSink('datadog_logs')
  doubles.datadog_logs.double.intervene(() => ({
    status: 403,
    body: '{"errors":["Forbidden example-datadog-key"]}',
  }))
  startWorker()
  await write(1)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ state: 'error' })
  const { last_error: error } = await readSink(id)
  expect(error).toMatch(/^The destination answered 403: .*Forbidden/)
  expect(error).not.toContain('example-datadog-key')
  doubles.datadog_logs.double.intervene(undefined)
  await api.send(updateExport, {
    params: { export_id: id },
    body: { label: 'Again', config: { service: 'changed' } },
  })
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ state: 'ok', pending_events: 0 })
})

test('an event that a destination refuses becomes a dead letter, is listed, and goes when it is requeued', async () => {
  const { api, createSink, doubles, idsOf, readSink, startWorker, write } = await openDelivery()
  const id = await createSink('webhook')
  let isPoisonous = true
  doubles.webhook.double.intervene(({ body }) =>
    isPoisonous && body.includes('poison0') ? { status: 422, body: 'not this one' } : undefined,
  )
  await write(100)
  const [poison] = await write(1, 'poison')
  await write(100)
  startWorker()
  await expect
    .poll(() => readSink(id), caughtUp)
    .toMatchObject({ pending_events: 0, dead_letters: 1 })
  const params = { export_id: id }
  const { body } = await api.send(listExportDeadLetters, { params })
  expect((body as { data: unknown[] }).data).toMatchObject([
    { event_id: poison!.id, error: 'The destination answered 422: not this one' },
  ])
  expect(idsOf('webhook')).not.toContain(poison!.id)
  isPoisonous = false
  expect((await api.send(requeueExportDeadLetters, { params, body: {} })).body).toMatchObject({
    requeued: 1,
  })
  await expect.poll(() => idsOf('webhook'), caughtUp).toContain(poison!.id)
  expect(await readSink(id)).toMatchObject({ dead_letters: 0, state: 'ok' })
})

test('a replay delivers a past range once more, beside what is new', async () => {
  const { api, createSink, doubles, idsOf, readSink, startWorker, write } = await openDelivery()
  const id = await createSink('elastic')
  startWorker()
  const first = await write(20)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  doubles.elastic.double.received.length = 0
  const from = new Date(first[0]!.at.getTime()).toISOString()
  const answer = await api.send(replayExport, { params: { export_id: id }, body: { from } })
  expect(answer.status).toBe(200)
  const second = await write(5)
  const wanted = [...first, ...second].map((event) => event.id)
  // Elasticsearch has them already, so only those that are new are stored again.
  await expect
    .poll(() => idsOf('elastic'), caughtUp)
    .toEqual(expect.arrayContaining(second.map(({ id }) => id)))
  await expect
    .poll(
      async () =>
        (await sql`select from export_cursor where is_replay`.execute(api.db)).rows.length,
      caughtUp,
    )
    .toBe(0)
  expect(wanted).toHaveLength(25)
})

test('two workers deliver nothing twice while neither dies', async () => {
  const { createSink, idsOf, readSink, startWorker, write } = await openDelivery()
  const id = await createSink('splunk_hec')
  startWorker()
  startWorker()
  await write(2500)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  const ids = idsOf('splunk_hec')
  expect(new Set(ids).size).toBe(ids.length)
})
