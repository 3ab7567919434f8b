import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  readPolicyRollout,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { sql } from 'kysely'
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { z } from 'zod'

import { guard } from '#access/guard.ts'
import { createOrganization } from '#access/manage-organizations.ts'
import type { House } from '#assemble.ts'
import { bind } from '#http/bind.ts'
import { setErrorDialect } from '#http/error-dialect.ts'
import { createServer } from '#http/server.ts'
import type { Clock } from '#platform/clock.ts'
import { exactRule } from '#testing/policy-calls.ts'
import { createTestApi, startAnotherHouse } from '#testing/test-api.ts'
import { createProjectKey, masterKey } from '#testing/test-gateway.ts'

import { describePinned } from './in-force.ts'
import { pinSnapshots } from './pin-snapshot.ts'

let api: Awaited<ReturnType<typeof createTestApi>>
beforeEach(async () => {
  api = await createTestApi()
  await waitUntil(() => Number.isFinite(api.house.policies.inForce.confirmedAtMs()))
})

const at = (id: string) => ({ params: { policy_id: id } })

async function makePolicy(mode = 'enforcing') {
  const body = { name: 'Kindness', rule: exactRule, mode, scope: 'organization' }
  return (await api.send(createPolicy, { body })).body.id
}

const change = async (endpoint: Endpoint, id: string, revision: number, body = {}) => {
  const answer = await api.send(endpoint, { ...at(id), body: { revision, ...body } })
  expect(answer.status).toBe(200)
}

const inForce = (house: House = api.house) =>
  describePinned(house.policies.inForce.pin(api.organization.organizationId), true)

const versions = () => inForce().policies.map(({ version, mode }) => `${version} ${mode}`)

const untilEpoch = (epoch: number) => waitUntil(() => inForce().epoch === epoch)

const startHouse = (environment: Record<string, string>, now?: Clock) =>
  startAnotherHouse(api.house, environment, now)

test('what is published is in force; drafts and paused policies are not', async () => {
  const id = await makePolicy()
  expect([inForce().epoch, versions()]).toEqual([0, []])
  await change(publishPolicy, id, 1)
  await untilEpoch(1)
  expect(versions()).toEqual(['1 enforcing'])
  await change(updatePolicy, id, 2, { mode: 'monitoring' })
  expect(versions()).toEqual(['1 enforcing'])
  await change(pausePolicy, id, 3)
  await untilEpoch(2)
  expect(versions()).toEqual([])
  await change(publishPolicy, id, 4) // the stop holds
  await change(resumePolicy, id, 5)
  await untilEpoch(3)
  expect(versions()).toEqual(['2 monitoring'])
  await api.send(deletePolicy, { ...at(id), query: { revision: '6' } })
  await untilEpoch(4)
  expect(versions()).toEqual([])
})

test('a request keeps the policies it began with, and its answer names their epoch', async () => {
  const goOn = Promise.withResolvers<void>()
  const arrived = Promise.withResolvers<void>()
  const { house } = api
  const app = createServer({ ...house, trustedProxies: [], connectionsMax: 100 })
  const endpoint = {
    id: 'wait',
    summary: 'Waits.',
    method: 'GET',
    path: '/v1/models',
    dialect: 'openai',
    credentials: ['project_key'],
    permission: 'model.invoke',
    errors: [],
    bodyLimitBytes: 1,
    successStatus: 200,
    isIdempotent: false,
    response: z.object({ epochs: z.array(z.int()) }),
  } as const satisfies Endpoint
  void app.register(async (scope) => {
    setErrorDialect(scope, 'openai', house)
    guard(scope, house.access.authentication)
    pinSnapshots(scope, house.policies.inForce)
    let pinned: { snapshot: { epoch: number } } | null
    scope.addHook('preHandler', async (request) => {
      pinned = request.policies
    })
    bind(scope, endpoint, async () => {
      const before = pinned!.snapshot.epoch
      arrived.resolve()
      await goOn.promise
      return { epochs: [before, pinned!.snapshot.epoch] }
    })
  })
  onTestFinished(() => app.close())
  const id = await makePolicy()
  await change(publishPolicy, id, 1)
  await untilEpoch(1)
  const key = await createProjectKey(house, api.organization)
  const answering = app.inject({ url: '/v1/models', headers: key.headers })
  await arrived.promise
  await change(pausePolicy, id, 2)
  await untilEpoch(2)
  goOn.resolve()
  const answer = await answering
  expect([answer.headers['x-policy-epoch'], answer.json()]).toEqual(['1', { epochs: [1, 1] }])
})

test('a process that starts later, or has missed changes, loads everything', async () => {
  const id = await makePolicy()
  await change(publishPolicy, id, 1)
  const late = startHouse({})
  await waitUntil(() => Number.isFinite(late.policies.inForce.confirmedAtMs()))
  expect(inForce(late)).toMatchObject({ epoch: 1, policies: [{ policy_id: id, version: 1 }] })
})

/** What an attacker with full rights on the database could do. */
async function tamper(statement: ReturnType<typeof sql>) {
  await sql`alter table policy_version disable trigger all`.execute(api.db)
  await statement.execute(api.db)
  await sql`alter table policy_version enable trigger all`.execute(api.db)
}

test('a version whose content is not what was published is not put in force, and that is reported', async () => {
  const id = await makePolicy()
  await change(publishPolicy, id, 1)
  await untilEpoch(1)
  await change(updatePolicy, id, 2, { rule: 'cel: text.contains("arms")' })
  // Before any process can apply it.
  await sql`create function spoil() returns trigger language plpgsql as
    $$ begin new.rule = 'Anything goes.'; return new; end $$`.execute(api.db)
  await sql`create trigger spoil before insert on policy_version for each row
    execute function spoil()`.execute(api.db)
  await change(publishPolicy, id, 3)
  const rollout = async () => (await api.send(readPolicyRollout, at(id))).body as unknown
  await expect.poll(rollout).toMatchObject({
    current_version: 2,
    is_applied: false,
    processes: { live: 1, applied: 0, pending: 0, failed: 1, silent: 0 },
    versions: [{ version: 1, processes: 1 }],
  })
  expect(versions()).toEqual(['1 enforcing'])
  await sql`drop trigger spoil on policy_version`.execute(api.db)
  await change(updatePolicy, id, 4, { rule: 'cel: text.contains("arm")' })
  await change(publishPolicy, id, 5)
  await expect.poll(rollout).toMatchObject({ is_applied: true, versions: [{ version: 3 }] })
})

test('a new process refuses requests of an organization with a tampered version', async () => {
  const id = await makePolicy()
  await change(publishPolicy, id, 1)
  await tamper(sql`update policy_version set rule = 'Anything goes.'`)
  const late = startHouse({})
  await waitUntil(() => late.policies.inForce.failures.size > 0)
  expect(() => inForce(late)).toThrow('cannot be loaded')
})

async function makeFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-state-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  return folder
}

/** A process that kept its policies on disk and is gone. */
async function leaveCopy(mode: string) {
  const folder = await makeFolder()
  const settings = { STATE_DIRECTORY: folder, MASTER_KEYS: masterKey(1) }
  const id = await makePolicy(mode)
  await change(publishPolicy, id, 1)
  const first = startHouse(settings)
  const file = join(folder, 'policies')
  await waitUntil(async () => (await readFile(file, 'utf8').catch(() => '')).includes(id))
  await first.stop()
  const away = { ...settings, DATABASE_URL: 'postgres://postgres@127.0.0.1:1/none' }
  return { away, file, id }
}

test('without the database a process starts with the policies it last knew, and says so', async () => {
  const { away, id } = await leaveCopy('enforcing')
  const house = startHouse(away)
  await waitUntil(() => Number.isFinite(house.policies.inForce.confirmedAtMs()))
  await vi.waitUntil(() => inForce(house).is_stale, { timeout: 5000 })
  expect(inForce(house)).toMatchObject({ epoch: 1, policies: [{ policy_id: id, version: 1 }] })
})

test('the database replaces a copy with a higher epoch, as after a restore from a dump', async () => {
  const { away, id } = await leaveCopy('enforcing')
  // As after a restore from a dump: the copy is at epoch 1, the database is reset to before it.
  await sql`alter table policy_epoch disable trigger all`.execute(api.db)
  await sql`delete from policy_epoch`.execute(api.db)
  await sql`update organization set policy_epoch = 0`.execute(api.db)
  await sql`update policy set deleted_at = now() where id = ${id}`.execute(api.db)
  const { DATABASE_URL: _, ...settings } = away
  const house = startHouse(settings)
  await waitUntil(() => Number.isFinite(house.policies.inForce.confirmedAtMs()))
  await expect.poll(() => inForce(house)).toEqual({ epoch: 0, is_stale: false, policies: [] })
})

test('an error with one organization does not affect the others', async () => {
  const id = await makePolicy()
  await change(publishPolicy, id, 1)
  await untilEpoch(1)
  await tamper(sql`update policy_version set rule = 'Anything goes.'`)
  const other = await createOrganization('Neighbour', api.house)
  const late = startHouse({})
  await waitUntil(() => late.policies.inForce.failures.size > 0)
  const pinned = late.policies.inForce.pin(other.organizationId)
  expect(pinned.snapshot.policies).toEqual([])
})

test.each(['enforcing', 'monitoring'])('a copy older than a day, %s', async (mode) => {
  const { away } = await leaveCopy(mode)
  const house = startHouse(away, () => new Date(Date.now() + 25 * 60 * 60 * 1000))
  await waitUntil(() => Number.isFinite(house.policies.inForce.confirmedAtMs()))
  if (mode === 'enforcing') expect(() => inForce(house)).toThrow('cannot be loaded')
  else expect(inForce(house).is_stale).toBe(true)
})

test('a copy that was not written by this service is not used', async () => {
  const { away, file } = await leaveCopy('enforcing')
  const text = await readFile(file, 'utf8')
  await writeFile(file, text.replace('enforcing', 'monitoring'))
  const house = startHouse(away)
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(() => inForce(house)).toThrow('cannot be loaded')
})

/** As an earlier release published it, which did not check rules. */
const publishUnchecked = (id: string) =>
  tamper(sql`
    with plain as (select 'cel: mood(''bad'') > 0'::text as rule), changed as (
      update policy_version v set rule = plain.rule, sha256 = sha256(convert_to(
        '{"direction":"both","match_threshold_basis_points":null,"mode":"enforcing","project_ids":[],"rule":"'
        || plain.rule || '","scope":"organization"}', 'UTF8'))
      from plain where v.policy_id = ${id} returning v.sha256)
    update policy set published_sha256 = changed.sha256 from changed where policy.id = ${id}`)

test('a rule that cannot be evaluated fails alone, and that is counted and shown', async () => {
  const ids = [await makePolicy(), await makePolicy()]
  for (const id of ids) await change(publishPolicy, id, 1)
  await publishUnchecked(ids[0]!)
  const late = startHouse({})
  await waitUntil(() => Number.isFinite(late.policies.inForce.confirmedAtMs()))
  const problem = expect.stringContaining("there is no function 'mood'") as string
  const [first, second] = ids.toSorted()
  const describe = (policy_id: string | undefined) =>
    expect.objectContaining({ policy_id, ...(policy_id === ids[0] && { problem }) }) as object
  expect(inForce(late).policies).toEqual([describe(first), describe(second)])
  expect(late.policies.inForce.failures.size).toBe(0)
  const { values } = await late.metrics.policyFailures.get()
  expect(values.map(({ value }) => value)).toEqual([1])
})

test('a policy in force that is renamed has its new name everywhere, in the same epoch', async () => {
  const id = await makePolicy()
  await change(publishPolicy, id, 1)
  await untilEpoch(1)
  const pin = () => api.house.policies.inForce.pin(api.organization.organizationId).snapshot
  expect(pin().policies.map(({ name }) => name)).toEqual(['Kindness'])
  await change(updatePolicy, id, 2, { name: 'Renamed' })
  await expect.poll(() => pin().policies.map(({ name }) => name)).toEqual(['Renamed'])
  expect(pin().epoch).toBe(1)
})
