import { randomBytes } from 'node:crypto'

import { createExport } from '@gatehouse/contract/exports/export-sink'
import { listProjects } from '@gatehouse/contract/project'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import { createSecretBox, type Keyring, type MasterKey } from '#platform/secrets.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { recognizeDatabase, rewrapKeyCheck } from './installation.ts'

const newKey = (version: number): MasterKey => ({ version, bytes: randomBytes(32) })
const [first, second, stranger] = [newKey(1), newKey(2), newKey(1)]

async function openDatabase() {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  return database.db
}
const faultOf = async (db: Db, ...keyring: Keyring) => (await recognizeDatabase(db, keyring))?.fault
const wrong = expect.stringMatching(/^MASTER_KEYS does not belong to this database: /)

async function readCheck(db: Db): Promise<Buffer | null | undefined> {
  const query = sql<{ key_check: Buffer | null }>`select key_check from installation`
  return (await query.execute(db)).rows[0]?.key_check
}

test('the first key that is used with a fresh database is the right one', async () => {
  const db = await openDatabase()
  expect(await faultOf(db, first)).toBe(null)
  expect(await faultOf(db, first)).toBe(null)
  expect(await faultOf(db, stranger)).toEqual(wrong)
  expect(await faultOf(db, second)).toEqual(wrong)
})

test('two processes with different keys that start at once: exactly one of them is right', async () => {
  for (let round = 0; round < 5; round++) {
    const db = await openDatabase()
    const keys = [newKey(1), newKey(1), newKey(1)] as const
    const faults = await Promise.all(keys.map((key) => faultOf(db, key)))
    const right = keys.filter((_, index) => faults[index] === null)
    expect(right).toHaveLength(1)
    expect(await faultOf(db, right[0]!)).toBe(null)
  }
})

test('a rotation keeps it valid at each step', async () => {
  const db = await openDatabase()
  expect(await faultOf(db, first)).toBe(null)
  expect(await faultOf(db, first, second)).toBe(null)
  expect(await faultOf(db, second, first)).toBe(null)
  // A process without the new key has not been restarted yet.
  expect(await faultOf(db, first)).toBe(null)
  expect(await faultOf(db, second)).toEqual(wrong)
  await rewrapKeyCheck(db, createSecretBox([second, first]))
  expect(await faultOf(db, second)).toBe(null)
  expect(await faultOf(db, second, first)).toBe(null)
  expect(await faultOf(db, first)).toEqual(wrong)
  const sealed = await readCheck(db)
  await rewrapKeyCheck(db, createSecretBox([second, first]))
  expect(await readCheck(db)).toEqual(sealed)
})

test('a database of an earlier release with API keys: no start seals the value, the first key that is verified does', async () => {
  const { db, house, send } = await createTestApi()
  const [own] = house.config.MASTER_KEYS
  expect(await faultOf(db, stranger)).toBe(null)
  expect(await faultOf(db, own)).toBe(null)
  expect(await readCheck(db)).toBe(null)
  expect((await send(listProjects, { credential: `gate_adm_${'0'.repeat(49)}` })).status).toBe(401)
  expect(await readCheck(db)).toBe(null)
  expect((await send(listProjects)).status).toBe(200)
  await waitUntil(async () => (await readCheck(db)) !== null)
  expect(await faultOf(db, own)).toBe(null)
  expect(await faultOf(db, stranger)).toEqual(wrong)
})

test('a key that verifies nothing and opens nothing leaves it open', async () => {
  const { db, organization } = await createTestApi()
  expect(organization.adminKey).toMatch(/^gate_adm_/)
  expect(await faultOf(db, stranger)).toBe(null)
  expect(await readCheck(db)).toBe(null)
})

test('an earlier release’s database with sealed secrets: only a key that opens one of them seals the value', async () => {
  const { db, house, send } = await createTestApi()
  const config = { endpoint: 'https://splunk.example.com', token: 'canary-token-7f3a' }
  const created = await send(createExport, { body: { type: 'splunk_hec', config } })
  expect(created.status).toBe(201)
  await waitUntil(async () => (await readCheck(db)) !== null)
  await sql`update installation set key_check = null`.execute(db)
  expect(await faultOf(db, stranger)).toBe(null)
  expect(await readCheck(db)).toBe(null)
  const [own] = house.config.MASTER_KEYS
  expect(await faultOf(db, second, own)).toBe(null)
  // With the key that has opened the secret, not with the newest one.
  expect(await faultOf(db, own)).toBe(null)
  expect(await faultOf(db, second)).toEqual(wrong)
})

test('a sealed value of another database is not accepted', async () => {
  const [one, other] = [await openDatabase(), await openDatabase()]
  // Test databases are copies of one template, ids included.
  await sql`update installation set id = gen_random_uuid()`.execute(other)
  expect(await faultOf(one, first)).toBe(null)
  await sql`update installation set key_check = ${await readCheck(one)}`.execute(other)
  expect(await faultOf(other, first)).toEqual(wrong)
})
