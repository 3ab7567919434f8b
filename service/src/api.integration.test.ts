import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import pg from 'pg'
import { expect, onTestFinished, test } from 'vitest'

import type { Readiness } from '#http/health.ts'
import { createTestDatabase } from '#testing/test-database.ts'
import { masterKey } from '#testing/test-gateway.ts'

import { startApi } from './api.ts'
import { assemble } from './assemble.ts'
import { loadConfig } from './config.ts'

/** The role that answers callers, and its readiness; stopped when the test ends. */
async function start(databaseUrl: string) {
  const config = loadConfig({
    DATABASE_URL: databaseUrl,
    MASTER_KEYS: masterKey(1),
    LOG_LEVEL: 'silent',
    HOST: '127.0.0.1',
    PORT: '0',
    UNREADY_SECONDS: '0',
  })
  const house = assemble(config)
  let readiness: Readiness = () => ['not started']
  const api = await startApi(house, undefined, async (operations) => {
    readiness = operations.readiness
    return { close: async () => undefined }
  })
  onTestFinished(async () => {
    await api.drain()
    await house.stop()
  })
  return { house, readiness: () => readiness() }
}

/** Keeps everybody from reading organizations, and so what they have published, until `end`. */
async function lockOrganizations(connectionString: string) {
  const client = new pg.Client({ connectionString })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin')
  await client.query('lock table organization')
  return { end: () => client.query('rollback') }
}

test('a process that has polled is not ready before its policies are in force', async () => {
  const database = await createTestDatabase()
  onTestFinished(() => database[Symbol.asyncDispose]())
  const lock = await lockOrganizations(database.url)
  const { house, readiness } = await start(database.url)
  await waitUntil(house.follower.lastPollAt)
  expect(await readiness()).toEqual(['the policies are not in force yet'])
  await lock.end()
  await waitUntil(async () => (await readiness()).length === 0)
})
