import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { readGatewayRollout, saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test } from 'vitest'

import type { House } from '#assemble.ts'
import { rewrapGuardrailSecrets } from '#gateway-config/guardrails/rewrap-guardrails.ts'
import {
  canary,
  guardrailCalls,
  usual,
} from '#gateway-config/guardrails/testing/guardrail-calls.ts'
import type { Clock } from '#platform/clock.ts'
import { createSecretBox } from '#platform/secrets.ts'
import { createTestApi, startAnotherHouse } from '#testing/test-api.ts'
import { createProject, masterKey } from '#testing/test-gateway.ts'

import { guardrailsOf } from './guardrails-of.ts'

// Guardrails in organizations that have published no policy and saved no configuration.

let api: Awaited<ReturnType<typeof createTestApi>>
let calls: ReturnType<typeof guardrailCalls>
beforeEach(async () => {
  api = await createTestApi({ findAddresses: async () => [] })
  calls = guardrailCalls(api)
  await waitUntil(() => Number.isFinite(api.house.policies.inForce.confirmedAtMs()))
})

const pin = (house: House = api.house) =>
  house.policies.inForce.pin(api.organization.organizationId).snapshot
const asked = (projectId: string | null = null, house?: House) =>
  guardrailsOf(pin(house), projectId)
const names = (projectId?: string) => asked(projectId).map(({ name }) => name)
const untilEpoch = (epoch: number) => waitUntil(() => pin().epoch === epoch)

/** With the keys that sealed the secrets, unless others are given. */
const ownKeys = () =>
  api.house.config.MASTER_KEYS.map(({ version, bytes }) => `${version}:${bytes.toString('base64')}`)
const startHouse = (environment: Record<string, string> = {}, now?: Clock) =>
  startAnotherHouse(api.house, { MASTER_KEYS: ownKeys().join(','), ...environment }, now)
const untilKnown = (house: House) =>
  waitUntil(() => Number.isFinite(house.policies.inForce.confirmedAtMs()))

test('a guardrail that is saved is asked in the next epoch, with its secret, and one that is deleted no more', async () => {
  expect([pin().epoch, asked()]).toEqual([0, []])
  const { id } = (await calls.create({ mode: 'enforcing', on_error: 'allow', deadline_ms: 700 }))
    .guardrail
  await untilEpoch(1)
  expect(asked()).toEqual([
    {
      id,
      name: 'House',
      url: usual.url,
      mode: 'enforcing',
      onError: 'allow',
      deadlineMs: 700,
      secret: canary,
    },
  ])
  const before = pin()
  await calls.edit(id, { mode: 'monitoring' })
  await untilEpoch(2)
  expect([asked()[0]?.mode, guardrailsOf(before, null)[0]?.mode]).toEqual([
    'monitoring',
    'enforcing',
  ])
  await calls.edit(id, { enabled: false })
  await untilEpoch(3)
  expect(asked()).toEqual([])
  await calls.edit(id, { enabled: true })
  await untilEpoch(4)
  expect(names()).toEqual(['House'])
  await calls.remove(id)
  await untilEpoch(5)
  expect(asked()).toEqual([])
})

test('guardrails are asked about calls of their projects, the oldest first', async () => {
  const { organizationId } = api.organization
  const [one, two] = [
    await createProject(api.house, organizationId),
    await createProject(api.house, organizationId),
  ]
  await calls.create({ name: 'both', project_ids: [one, two] })
  await calls.create({ name: 'all' })
  await calls.create({ name: 'disabled', enabled: false })
  await calls.create({ name: 'two', project_ids: [two] })
  await untilEpoch(3)
  expect([names(one), names(two), names('proj_other'), names()]).toEqual([
    ['both', 'all'],
    ['both', 'all', 'two'],
    ['all'],
    ['all'],
  ])
})

test('the rollout says which processes have applied a change; the revision is that of the configuration', async () => {
  const readRollout = async () => (await api.send(readGatewayRollout)).body
  const isApplied = async () =>
    ((await readRollout()) as unknown as { is_applied: boolean }).is_applied
  await api.send(saveGatewayConfig, { body: { config: { name: 'A' } } })
  const { id } = (await calls.create()).guardrail
  await waitUntil(isApplied)
  expect(await readRollout()).toMatchObject({
    revision: 1,
    policy_epoch: 2,
    revisions: [{ revision: 1, processes: 1 }],
  })
  await calls.remove(id)
  await waitUntil(isApplied)
  expect(asked()).toEqual([])
  expect(await readRollout()).toMatchObject({ revision: 1, policy_epoch: 3 })
})

/** A process that keeps its snapshots on disk, until `done` of what they say. */
async function startKeeping(done: (file: string) => boolean) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-state-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const settings = { STATE_DIRECTORY: folder }
  const house = startHouse(settings)
  const read = () => readFile(join(folder, 'policies'), 'utf8').catch(() => '')
  await waitUntil(async () => done(await read()))
  return { house, settings, read }
}
const away = { DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none' }

test('without the database a process starts with the guardrails it last knew; their secrets are sealed on disk', async () => {
  await calls.create({
    mode: 'enforcing',
    project_ids: [await createProject(api.house, api.organization.organizationId)],
  })
  await calls.create({ name: 'Other' })
  await untilEpoch(2)
  const { house: first, settings, read } = await startKeeping((file) => file.includes('Other'))
  await first.stop()
  const file = await read()
  const bytes = Buffer.from(canary.slice('whsec_'.length), 'base64')
  for (const form of [canary, bytes.toString('base64'), bytes.toString('hex'), bytes.toString()]) {
    expect(file).not.toContain(form)
  }
  const house = startHouse({ ...settings, ...away })
  await untilKnown(house)
  expect(pin(house).guardrails).toEqual(pin().guardrails)
  expect(asked(null, house)).toEqual(asked())
})

test('a copy older than a day is not relied on where a guardrail is enforcing', async () => {
  const { id } = (await calls.create({ mode: 'enforcing' })).guardrail
  const later = () => new Date(Date.now() + 25 * 60 * 60 * 1000)
  const enforcing = await startKeeping((file) => file.includes('House'))
  await enforcing.house.stop()
  const refusing = startHouse({ ...enforcing.settings, ...away }, later)
  await untilKnown(refusing)
  expect(() => pin(refusing)).toThrow('cannot be loaded')
  await calls.edit(id, { mode: 'monitoring' })
  const watching = await startKeeping((file) => file.includes('monitoring'))
  await watching.house.stop()
  const serving = startHouse({ ...watching.settings, ...away }, later)
  await untilKnown(serving)
  expect(asked(null, serving)).toHaveLength(1)
})

test('secrets that are sealed again are so in the copy on disk too', async () => {
  await calls.create({ mode: 'enforcing' })
  await untilEpoch(1)
  const sealed = pin().guardrails[0]!.sealedSecret
  const newest = masterKey(7)
  const keys = { MASTER_KEYS: [newest, ...ownKeys()].join(',') }
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-state-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const settings = { STATE_DIRECTORY: folder }
  const both = startHouse({ ...settings, ...keys })
  const read = () => readFile(join(folder, 'policies'), 'utf8').catch(() => '')
  await waitUntil(async () => (await read()).includes(sealed))
  const { secretBox } = both.mutations
  const deps = { db: api.db, now: () => new Date(), secretBox }
  expect(await rewrapGuardrailSecrets(deps)).toEqual({ found: 1, rewrapped: 1, unreadable: [] })
  expect(await rewrapGuardrailSecrets(deps)).toEqual({ found: 1, rewrapped: 0, unreadable: [] })
  await waitUntil(async () => !(await read()).includes(sealed))
  await both.stop()
  const alone = startHouse({ ...settings, ...away, MASTER_KEYS: newest })
  await untilKnown(alone)
  expect(asked(null, alone)).toMatchObject([{ secret: canary }])
  const stranger = createSecretBox([{ version: 8, bytes: Buffer.alloc(32, 8) }])
  const { unreadable } = await rewrapGuardrailSecrets({ ...deps, secretBox: stranger })
  expect(unreadable).toEqual([pin().guardrails[0]!.id])
})

test('an enforcing guardrail whose secret no key opens refuses the calls in its scope, until it has another one', async () => {
  const project = await createProject(api.house, api.organization.organizationId)
  const { id } = (
    await calls.create({ mode: 'enforcing', on_error: 'allow', project_ids: [project] })
  ).guardrail
  await calls.create({ name: 'Other' })
  await untilEpoch(2)
  await sql`
    update guardrail set secret = set_byte(secret, 40, 255 - get_byte(secret, 40)) where id = ${id}`.execute(
    api.db,
  )
  await calls.create({ name: 'Third' })
  await untilEpoch(3)
  expect(api.house.policies.inForce.unenforceable()).toBe(1)
  expect(() => asked(project)).toThrow("The guardrail 'House' cannot be asked")
  expect(names()).toEqual(['Other', 'Third'])
  expect((await calls.edit(id, { secret: canary })).status).toBe(200)
  await untilEpoch(4)
  expect(names(project)).toEqual(['House', 'Other', 'Third'])
  expect(api.house.policies.inForce.unenforceable()).toBe(0)
})
