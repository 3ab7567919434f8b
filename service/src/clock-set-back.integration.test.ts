import { randomBytes } from 'node:crypto'

import { expect, onTestFinished, test } from 'vitest'

import { formatKey } from '#access/secret.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import {
  createProjectKey,
  createTenant,
  createTestClock,
  createTestGateway,
} from '#testing/test-gateway.ts'

// The system's clock is set back by ten minutes while the process runs. Whatever waits must wait no longer for it.

const setBackMs = 600_000

async function prepare() {
  const [wall, steady] = [createTestClock(), createTestClock()]
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const gateway = await createTestGateway({
    databaseUrl: database.url,
    now: wall.now,
    steadyNow: steady.now,
  })
  onTestFinished(() => gateway[Symbol.asyncDispose]())
  return {
    ...gateway,
    tenant: await createTenant(gateway.house),
    database,
    /** Time passes, and meanwhile the clock is set back. */
    passSetBack(ms: number) {
      steady.pass(ms)
      wall.pass(ms - setBackMs)
    },
  }
}

const guess = () => ({
  headers: { authorization: `Bearer ${formatKey('gate_prj_', randomBytes(32))}` },
})

test('a guesser is let in again when its minute is over', async () => {
  const { call, passSetBack } = await prepare()
  const statuses: number[] = []
  for (let each = 0; each < 12; each++)
    statuses.push((await call('/v1/models', guess())).statusCode)
  expect(statuses.at(-1)).toBe(429)
  passSetBack(60_000)
  expect((await call('/v1/models', guess())).statusCode).toBe(401)
})

test('a cached key is looked up again after a minute', async () => {
  const { call, passSetBack, house, tenant, database } = await prepare()
  const { id, headers } = await createProjectKey(house, tenant)
  expect((await call('/v1/models', { headers })).statusCode).toBe(200)
  // Not announced: only the age of the cached key makes the process look again.
  const revoked_at = house.now()
  await database.db.updateTable('api_key').set({ revoked_at }).where('id', '=', id).execute()
  passSetBack(60_000)
  expect((await call('/v1/models', { headers })).statusCode).toBe(401)
})

test('a repeated refusal for too many requests ends when its wait is over', async () => {
  const { passSetBack, house } = await prepare()
  const { recentRefusals } = house.limits
  const principal = { organizationId: 'org_a', projectId: 'p', credentialId: 'k' } as never
  recentRefusals.record(principal, { headers: {}, refusal: {} as never, waitMs: 1000 })
  expect(recentRefusals.of(principal)).toBeDefined()
  passSetBack(1000)
  expect(recentRefusals.of(principal)).toBeUndefined()
})
