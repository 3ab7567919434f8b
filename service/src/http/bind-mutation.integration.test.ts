import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { listPolicies } from '@gatehouse/contract/policy'
import { createProject, listProjects, updateProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { expect, test, vi } from 'vitest'

import { createTestApi } from '#testing/test-api.ts'
import { createTestClock } from '#testing/test-gateway.ts'

import { sweepKeys } from './mutation/idempotency-store.ts'

const once = (key: string, name: string) => ({
  body: { name },
  headers: { 'idempotency-key': key },
})

test('a repetition has no second effect and gets the first answer', async () => {
  const { send, db } = await createTestApi()
  const first = await send(createProject, once('k', 'One'))
  const again = await send(createProject, once('k', 'One'))
  expect(again.body).toEqual(first.body)
  expect(first.headers['idempotent-replayed']).toBeUndefined()
  expect(again.headers['idempotent-replayed']).toBe('true')
  expect(await db.selectFrom('project').select('name').execute()).toHaveLength(2)
})

test('a quoted key is the same key; another path, method or organization is another scope', async () => {
  const { send, house, organization } = await createTestApi()
  const first = await send(createProject, once('k', 'One'))
  const quoted = await send(createProject, once('"k"', 'One'))
  expect(quoted.body).toEqual(first.body)
  const params = { project_id: organization.projectId }
  const elsewhere = await send(updateProject, { params, ...once('k', 'Renamed') })
  expect([elsewhere.status, elsewhere.headers['idempotent-replayed']]).toEqual([200, undefined])
  const { createOrganization } = await import('#access/manage-organizations.ts')
  const other = await createOrganization('Other', house)
  const foreign = await send(createProject, { ...once('k', 'One'), credential: other.adminKey })
  expect(foreign.headers['idempotent-replayed']).toBeUndefined()
  expect(foreign.body.id).not.toBe(first.body.id)
})

test('422 and 403 are not stored: the corrected request runs under the same key', async () => {
  const { send } = await createTestApi()
  expect((await send(createProject, once('k', ''))).status).toBe(422)
  expect((await send(createProject, once('k', 'Good'))).status).toBe(201)
})

test('404 is stored, with its body to the byte', async () => {
  const { send } = await createTestApi()
  const missing = { params: { project_id: 'proj_none' }, ...once('k', 'Name') }
  const first = await send(updateProject, missing)
  const again = await send(updateProject, missing)
  expect([first.status, again.status, again.body]).toEqual([404, 404, first.body])
  expect(again.headers['idempotent-replayed']).toBe('true')
})

test('stored answers are sealed', async () => {
  const { send, db } = await createTestApi()
  const { body } = await send(createProject, once('k', 'Confidential'))
  const row = await db.selectFrom('idempotency_key').select('answer').executeTakeFirstOrThrow()
  expect(row.answer?.toString('latin1')).not.toContain('Confidential')
  expect(row.answer?.toString('latin1')).not.toContain(body.id)
})

test('409: the first holder is still running', async () => {
  const { send, db, organization } = await createTestApi()
  const hold = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  // The organization's row is locked elsewhere, so the first request waits inside its transaction.
  const blocking = db.transaction().execute(async (tx) => {
    await sql`select 1 from organization where id = ${organization.organizationId} for update`.execute(
      tx,
    )
    held.resolve()
    await hold.promise
  })
  await held.promise
  const first = send(createProject, once('k', 'One'))
  await new Promise((resolve) => setTimeout(resolve, 300))
  const second = send(createProject, once('k', 'One'))
  await new Promise((resolve) => setTimeout(resolve, 1500))
  hold.resolve()
  await blocking
  expect((await first).status).toBe(201)
  // It either waited for the first (a replay) or gave up waiting (in progress): never a second effect.
  const { status, body, headers } = await second
  if (status === 201) expect(headers['idempotent-replayed']).toBe('true')
  else
    expect([status, body.error.code, headers['retry-after']]).toEqual([
      409,
      'idempotency_in_progress',
      '1',
    ])
  expect(headers['x-should-retry']).toBeUndefined()
  expect(await db.selectFrom('project').select('id').execute()).toHaveLength(2)
})

test('409 in progress: a holder that takes longer than the wait', async () => {
  const { send, db, organization } = await createTestApi()
  const key = { organization_id: organization.organizationId, key: 'k', created_at: new Date() }
  const { hashScope } = await import('./bind-mutation.ts')
  const scope = hashScope('POST', createProject.path)
  const hold = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const blocking = db.transaction().execute(async (tx) => {
    await tx
      .insertInto('idempotency_key')
      .values({ ...key, scope, fingerprint: Buffer.alloc(32) })
      .execute()
    held.resolve()
    await hold.promise
    throw new Error('died')
  })
  await held.promise
  const waiting = await send(createProject, once('k', 'One'))
  expect([waiting.status, waiting.body.error.code]).toEqual([409, 'idempotency_in_progress'])
  expect([waiting.headers['retry-after'], waiting.headers['x-should-retry']]).toEqual([
    '1',
    undefined,
  ])
  hold.resolve()
  await expect(blocking).rejects.toThrow('died')
  expect((await send(createProject, once('k', 'One'))).status).toBe(201)
})

test('after a day the key is free again, and the sweeper removes it', async () => {
  const clock = createTestClock()
  const { send, db } = await createTestApi({ now: clock.now })
  const first = await send(createProject, once('k', 'One'))
  clock.pass(24 * 60 * 60 * 1000 + 1)
  const later = await send(createProject, once('k', 'Two'))
  expect([later.status, later.headers['idempotent-replayed']]).toEqual([201, undefined])
  expect(later.body.id).not.toBe(first.body.id)
  expect(await db.transaction().execute((tx) => sweepKeys(tx, clock.now(), 10))).toBe(0)
  clock.pass(24 * 60 * 60 * 1000 + 1)
  expect(await db.transaction().execute((tx) => sweepKeys(tx, clock.now(), 10))).toBe(1)
})

test('403: a key that could not have made the request does not get its stored answer', async () => {
  const { send } = await createTestApi()
  const wide = { name: 'CI', permissions: ['policies.write', 'credits.write'] }
  const sent = { body: wide, headers: { 'idempotency-key': 'create-ci-key' } }
  const first = await send(createAdminApiKey, sent)
  expect(first.status).toBe(201)
  const narrow = { name: 'Narrow', permissions: ['admin_api_keys.write'] }
  const { body } = await send(createAdminApiKey, { body: narrow })
  const replay = await send(createAdminApiKey, { ...sent, credential: body.value })
  expect([replay.status, replay.body.error.code]).toEqual([403, 'permission_denied'])
  expect((await send(createAdminApiKey, sent)).body).toEqual(first.body)
})

test('many changes of one organization leave connections for the others', async () => {
  const { send, house } = await createTestApi()
  const { createOrganization } = await import('#access/manage-organizations.ts')
  const other = await createOrganization('Other', house)
  let changesMade = 0
  const crowd = Array.from({ length: 80 }, async (_, index) => {
    const answer = await send(createProject, { body: { name: `${index}` } })
    changesMade++
    return answer
  })
  const { status } = await send(listProjects, { credential: other.adminKey })
  const madeBefore = changesMade
  const all = await Promise.all(crowd)
  expect([status, new Set(all.map((each) => each.status))]).toEqual([200, new Set([201])])
  // It came last and is answered while most of them still wait.
  expect(madeBefore).toBeLessThan(crowd.length / 2)
})

test('many reads of one organization leave connections for the others', async () => {
  const { send, house } = await createTestApi({ environment: { DATABASE_POOL_SIZE: '4' } })
  const { createOrganization } = await import('#access/manage-organizations.ts')
  const other = await createOrganization('Other', house)
  const hold = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const blocking = house.db.transaction().execute(async (tx) => {
    await sql`lock table policy in access exclusive mode`.execute(tx)
    held.resolve()
    await hold.promise
  })
  await held.promise
  // They wait for the lock, in as many connections as they get.
  let readsEnded = 0
  const crowd = Array.from({ length: 20 }, () => send(listPolicies).finally(() => readsEnded++))
  const isWaiting = async () => {
    const { rows } = await sql`select from pg_stat_activity
      where wait_event_type = 'Lock' and datname = current_database()`.execute(house.db)
    return rows.length > 0
  }
  await vi.waitUntil(isWaiting, { timeout: 5000, interval: 10 })
  const { status } = await send(listProjects, { credential: other.adminKey })
  const endedBefore = readsEnded
  hold.resolve()
  await blocking
  expect([status, endedBefore]).toEqual([200, 0])
  for (const { status } of await Promise.all(crowd)) expect([200, 503]).toContain(status)
})

test('a change that was answered 503 is not made later', async () => {
  const { send, db, organization } = await createTestApi()
  const hold = Promise.withResolvers<void>()
  const held = Promise.withResolvers<void>()
  const { organizationId } = organization
  const blocking = db.transaction().execute(async (tx) => {
    await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
    await sql`select 1 from organization where id = ${organizationId} for update`.execute(tx)
    held.resolve()
    await hold.promise
  })
  await held.promise
  const crowd = Array.from({ length: 40 }, (_, index) =>
    send(createProject, { body: { name: `${index}` } }),
  )
  const statuses = new Set((await Promise.all(crowd)).map(({ status }) => status))
  hold.resolve()
  await blocking
  await new Promise((resolve) => setTimeout(resolve, 1000))
  expect(statuses).toEqual(new Set([503]))
  expect(await db.selectFrom('project').select('id').execute()).toHaveLength(1)
})
