import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { runNamed } from '#platform/database.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { binaryArray, plainArray } from './array-values.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => void (database = await createTestDatabase()))
afterAll(async () => database[Symbol.asyncDispose]())

const texts = ['', 'plain', 'größe €', '{"a"}', 'a,b', '\\', 'NULL', ' ', '\u{1f600}']

/** The array as the server understands it, as JSON. */
async function readBack(type: string, value: unknown) {
  const statement = { name: `read_${type}`, text: `select to_jsonb($1::${type}[])` }
  const [row] = await runNamed<[unknown]>(database.db, statement, [value])
  return row?.[0]
}

test('texts arrive as they are, whatever is in them', async () => {
  expect(await readBack('text', binaryArray('text', texts))).toEqual(texts)
})

test('JSON arrives as it is', async () => {
  const values = [{ name: 'größe "€"', list: [1, null, '\\'] }, {}]
  const sent = binaryArray(
    'jsonb',
    values.map((value) => JSON.stringify(value)),
  )
  expect(await readBack('jsonb', sent)).toEqual(values)
})

test('bytes arrive as they are', async () => {
  const values = [Buffer.from([0, 1, 92, 34, 255]), Buffer.alloc(0)]
  const read = (await readBack('bytea', binaryArray('bytea', values))) as string[]
  expect(read).toEqual(values.map((value) => `\\x${value.toString('hex')}`))
})

test('an array without elements has none', async () => {
  for (const type of ['text', 'jsonb', 'bytea'] as const) {
    const { rows } = await sql<{ count: number }>`
      select cardinality(${binaryArray(type, [])}::${sql.raw(type)}[]) as count`.execute(
      database.db,
    )
    expect(rows).toEqual([{ count: 0 }])
  }
  expect(await readBack('bigint', plainArray([]))).toEqual([])
})

test('numbers, UUIDs and times arrive as they are', async () => {
  const numbers = [0, -5, 9_007_199_254_740_993n]
  const { rows } = await sql<{ values: string[] }>`
    select ${plainArray(numbers)}::bigint[]::text[] as values`.execute(database.db)
  expect(rows).toEqual([{ values: numbers.map(String) }])
  const uuids = ['01890a5d-ac96-774b-bcce-b302099a8057']
  expect(await readBack('uuid', plainArray(uuids))).toEqual(uuids)
  const times = ['2026-11-16T07:08:09.123Z']
  const read = (await readBack('timestamptz', plainArray(times))) as string[]
  expect(read.map((time) => new Date(time).toISOString())).toEqual(times)
})
