import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test } from 'vitest'

import type { House } from '#assemble.ts'
import type { Clock } from '#platform/clock.ts'
import { finish } from '#platform/steps/steps.ts'
import { createTestApi, startAnotherHouse } from '#testing/test-api.ts'
import { masterKey } from '#testing/test-gateway.ts'

// The configuration of the policy gateway, in organizations that have never published a policy.

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
  await waitUntil(() => Number.isFinite(api.house.policies.inForce.confirmedAtMs()))
})

const pin = (house: House = api.house) =>
  house.policies.inForce.pin(api.organization.organizationId).snapshot
const save = async (...denylist: string[]) => {
  const body = { config: { rules: { denylist } } }
  expect((await api.send(saveGatewayConfig, { body })).status).toBe(200)
}
const foundIn = ({ gateway }: ReturnType<typeof pin>, text: string) =>
  gateway && finish(gateway.terms.find([text]))
const termsIn = (house?: House) => pin(house).gateway?.config.rules.denylist

const startHouse = (environment: Record<string, string>, now?: Clock) =>
  startAnotherHouse(api.house, environment, now)

test('what is saved is in force, in the next epoch, with its terms compiled', async () => {
  expect([pin().epoch, pin().gateway]).toEqual([0, null])
  await save('bomb')
  await waitUntil(() => pin().epoch === 1)
  expect(pin().gateway).toMatchObject({ revision: 1, samplingRevision: 1 })
  expect(foundIn(pin(), 'A BOMB')).toEqual({ allowlist: [], denylist: ['bomb'] })
  const before = pin()
  await save('gun')
  await waitUntil(() => pin().epoch === 2)
  expect([termsIn(), before.gateway?.config.rules.denylist]).toEqual([['gun'], ['bomb']])
})

test('a process that starts reads it, and so does one after a gap', async () => {
  await save('bomb')
  const late = startHouse({})
  await waitUntil(() => Number.isFinite(late.policies.inForce.confirmedAtMs()))
  expect(termsIn(late)).toEqual(['bomb'])
})

/** A process that kept its snapshots on disk and is gone. */
async function leaveCopy() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-state-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const settings = { STATE_DIRECTORY: folder, MASTER_KEYS: masterKey(1) }
  const first = startHouse(settings)
  const file = join(folder, 'policies')
  await waitUntil(async () => (await readFile(file, 'utf8').catch(() => '')).includes('bomb'))
  await first.stop()
  return { ...settings, DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none' }
}

test('without the database a process starts with the configuration it last knew', async () => {
  await save('bomb')
  const house = startHouse(await leaveCopy())
  await waitUntil(() => Number.isFinite(house.policies.inForce.confirmedAtMs()))
  expect(pin(house).epoch).toBe(1)
  expect(pin(house).gateway?.samplingKey).toMatch(/^[0-9a-f]{64}$/)
  expect(foundIn(pin(house), 'a bomb')?.denylist).toEqual(['bomb'])
})

test('a copy older than a day is not relied on, because it refuses something', async () => {
  await save('bomb')
  const later = () => new Date(Date.now() + 25 * 60 * 60 * 1000)
  const house = startHouse(await leaveCopy(), later)
  await waitUntil(() => Number.isFinite(house.policies.inForce.confirmedAtMs()))
  expect(() => pin(house)).toThrow('cannot be loaded')
})

test('a configuration that this release does not understand leaves the older one in force, and is reported', async () => {
  await save('bomb')
  await waitUntil(() => pin().epoch === 1)
  await sql`create function spoil() returns trigger language plpgsql as
    $$ begin new.config = new.config || '{"newer": true}'::jsonb; return new; end $$`.execute(
    api.db,
  )
  await sql`create trigger spoil before update on gateway_config for each row
    execute function spoil()`.execute(api.db)
  await save('gun')
  // The row itself cannot be read by this release either, so the counts are read from the processes.
  const failures = () => api.house.policies.inForce.failures.get(api.organization.organizationId)
  await waitUntil(() => failures() !== undefined)
  expect([failures(), termsIn()]).toEqual([1, ['bomb']])
  const late = startHouse({})
  await waitUntil(() => late.policies.inForce.failures.size > 0)
  expect(() => pin(late)).toThrow('cannot be loaded')
  await sql`drop trigger spoil on gateway_config`.execute(api.db)
  await sql`update gateway_config set config = config - 'newer'`.execute(api.db)
  await save('knife')
  await waitUntil(() => pin().epoch === 3)
  const { body } = await api.send(readGatewayRollout)
  expect([termsIn(), body]).toMatchObject([['knife'], { revision: 3 }])
})
