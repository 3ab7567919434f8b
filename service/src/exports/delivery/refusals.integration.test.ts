import { gunzipSync } from 'node:zlib'

import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { publishKeys, signCheckpoints } from '#audit/log/sign-checkpoints.ts'
import { createSigningKey } from '#audit/log/signing-keys.ts'

import { announceGaps } from './announce-gaps.ts'
import { caughtUp, openDelivery, type TestDelivery } from './testing/test-delivery.ts'

const readCursor = async ({ api }: TestDelivery) => {
  const { rows } = await sql<{ batchMax: number | null; seconds: number }>`
    select batch_max as "batchMax", extract(epoch from next_at - now())::float8 as seconds
    from export_cursor where not is_replay`.execute(api.db)
  return rows[0]
}
const countLetters = async ({ api }: TestDelivery) => {
  const { rows } = await sql<{ count: number }>`
    select count(*)::integer as count from export_dead_letter`.execute(api.db)
  return rows[0]?.count
}

test('of 1,000 events, three that are refused become dead letters; the others arrive in order, in few requests', async () => {
  const delivery = await openDelivery()
  const { doubles, createSink, write, startWorker, readSink, numbersOf } = delivery
  const id = await createSink('webhook')
  for (const count of [100, 500, 397]) {
    await write(count)
    await write(1, 'poison')
  }
  let requests = 0
  doubles.webhook.double.intervene(({ body }) => {
    requests += 1
    return body.includes('poison0') ? { status: 400, body: 'not this one' } : undefined
  })
  startWorker()
  await expect
    .poll(() => readSink(id), caughtUp)
    .toMatchObject({ state: 'ok', pending_events: 0, dead_letters: 3 })
  const numbers = numbersOf('webhook')
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
  expect(new Set(numbers).size).toBe(997 + 2) // and those of the organization and the sink
  // Halving and doubling again for each of the three.
  expect(requests).toBeLessThan(90)
  await write(3000)
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ pending_events: 0 })
  expect((await readCursor(delivery))?.batchMax).toBeNull()
})

test('a destination that refuses everything does not turn the log into dead letters', async () => {
  const delivery = await openDelivery()
  const { api, doubles, createSink, write, startWorker, readSink } = delivery
  const id = await createSink('webhook')
  await write(1000)
  let requests = 0
  doubles.webhook.double.intervene(() => {
    requests += 1
    return { status: 400, body: 'wrong' }
  })
  startWorker()
  await expect
    .poll(() => readSink(id), caughtUp)
    .toMatchObject({
      state: 'error',
      last_error: 'The destination refuses every event. The destination answered 400: wrong',
      dead_letters: 20,
    })
  expect(requests).toBeLessThan(60)
  const before = requests
  expect((await readCursor(delivery))?.seconds).toBeGreaterThan(200)
  await sql`update export_cursor set next_at = now()`.execute(api.db)
  await expect.poll(() => countLetters(delivery), caughtUp).toBe(21)
  expect(requests).toBe(before + 1)
  doubles.webhook.double.intervene(undefined)
  await sql`update export_cursor set next_at = now()`.execute(api.db)
  await expect
    .poll(() => readSink(id), caughtUp)
    .toMatchObject({ state: 'ok', pending_events: 0, dead_letters: 21 })
})

test('items that are refused one and all are no different', async () => {
  const delivery = await openDelivery()
  const { doubles, createSink, write, startWorker, readSink } = delivery
  const id = await createSink('elastic')
  await write(300)
  const error = { type: 'document_parsing_exception', reason: 'no' }
  startWorker({
    request: async (_, { body }) => {
      const lines = gunzipSync(body as Buffer)
        .toString()
        .trim()
        .split('\n').length
      const items = Array.from({ length: lines / 2 }, () => ({ create: { status: 400, error } }))
      return { status: 200, headers: {}, body: Buffer.from(JSON.stringify({ items })) }
    },
  })
  await expect
    .poll(() => readSink(id), caughtUp)
    .toMatchObject({ state: 'error', dead_letters: 20 })
  expect(doubles.elastic.double.received).toEqual([])
})

test('a sink with 10,000 dead letters stops instead of dropping events', async () => {
  const delivery = await openDelivery()
  const { api, doubles, createSink, write, startWorker, readSink } = delivery
  const id = await createSink('webhook')
  await sql`
    insert into export_dead_letter
    select ${id}, 1000000 + n, '2026-01-01', gen_random_uuid(), 'e', 1, now()
    from generate_series(1, 10000) n`.execute(api.db)
  await write(1)
  doubles.webhook.double.intervene(() => ({ status: 400, body: 'wrong' }))
  startWorker()
  await expect.poll(() => readSink(id), caughtUp).toMatchObject({ state: 'error' })
  const { last_error, pending_events } = await readSink(id)
  expect(last_error).toMatch(/^There are 10000 dead letters: requeue some\. .*400: wrong$/)
  expect(pending_events).toBeGreaterThan(0)
  expect(await countLetters(delivery)).toBeLessThanOrEqual(10_001)
})

test('dead letters go with the days of their events', async () => {
  const delivery = await openDelivery()
  const { api, createSink } = delivery
  const id = await createSink('webhook')
  await sql`
    insert into export_dead_letter
    select ${id}, n, '2026-01-01'::date + n, gen_random_uuid(), 'e', 1, now()
    from generate_series(0, 9) n`.execute(api.db)
  const days = { first: '2026-01-03', end: '2026-01-05' }
  await api.db.transaction().execute((tx) => announceGaps(tx, days, new Date()))
  expect(await countLetters(delivery)).toBe(6)
})

test('a checkpoint that is refused is shown and left out, and events go on', async () => {
  const delivery = await openDelivery()
  const { api, doubles, createSink, write, startWorker, readSink, numbersOf } = delivery
  const id = await createSink('webhook')
  const keys = [createSigningKey({ version: 1, bytes: Buffer.alloc(32, 7) })] as const
  await write(5)
  await publishKeys({ ...api.house, keys })
  await signCheckpoints({ ...api.house, keys })
  await write(5)
  doubles.webhook.double.intervene(({ body }) =>
    body.includes('"checkpoint"') ? { status: 400, body: 'no notes' } : undefined,
  )
  startWorker()
  await expect
    .poll(() => readSink(id), caughtUp)
    .toMatchObject({
      state: 'ok',
      pending_events: 0,
      last_error: expect.stringMatching(/no notes/),
    })
  expect(numbersOf('webhook')).toHaveLength(12)
  expect(await countLetters(delivery)).toBe(0)
})
