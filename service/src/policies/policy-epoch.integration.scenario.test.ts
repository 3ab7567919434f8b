import type { Endpoint } from '@gatehouse/contract/endpoint'
import {
  createPolicy,
  deletePolicy,
  pausePolicy,
  publishPolicy,
  readPolicyRollout,
  restorePolicyVersion,
  resumePolicy,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

/** The kind of the last announced change, and all epochs so far, as [epoch, version]. */
async function readTraces() {
  const { db, organization } = house.api
  const changes = await db
    .selectFrom('config_change')
    .select(['kind', 'object_id'])
    .orderBy('seq')
    .execute()
  const epochs = await db
    .selectFrom('policy_epoch')
    .select(['epoch', 'version', 'policy_id'])
    .orderBy('epoch')
    .execute()
  const { policy_epoch: newest } = await db
    .selectFrom('organization')
    .select('policy_epoch')
    .where('id', '=', organization.organizationId)
    .executeTakeFirstOrThrow()
  return {
    kinds: changes.map(({ kind }) => kind),
    objects: new Set([...changes.map((each) => each.object_id), ...epochs.map((e) => e.policy_id)]),
    epochs: epochs.map(({ epoch, version }) => [Number(epoch), version]),
    newest: Number(newest),
  }
}

test('an epoch begins when another version comes into force, and never otherwise', async () => {
  let policy = await house.create()
  const kinds = ['policy_draft']
  const epochs: [number, number | null][] = []
  /**
   * `inForce`: the version from now on in force; undefined: what is in force has not changed. Processes are also told
   * of another name, because events name policies.
   */
  const step = async (endpoint: Endpoint, body: object, inForce?: number | null) => {
    const { status, body: answer } = await house.send(endpoint, policy, {
      body,
      params: { version: '1' },
    })
    expect(status, endpoint.id).toBe(200)
    if (endpoint !== deletePolicy) policy = answer as unknown as typeof policy
    const isInForce = policy.state === 'monitoring' || policy.state === 'enforcing'
    const isTold = inForce !== undefined || (isInForce && 'name' in body)
    kinds.push(isTold ? 'policy' : 'policy_draft')
    if (inForce !== undefined) epochs.push([epochs.length + 1, inForce])
    const seen = await readTraces()
    expect(seen, endpoint.id).toEqual({
      kinds,
      epochs,
      newest: epochs.length,
      objects: new Set([policy.id]),
    })
    if (endpoint === deletePolicy) return
    const params = { policy_id: policy.id }
    expect((await house.api.send(readPolicyRollout, { params })).body).toMatchObject({
      policy_epoch: epochs.length,
      version_in_force: epochs.at(-1)?.[1] ?? null,
      current_version: policy.current_version,
    })
  }
  await step(updatePolicy, { rule: 'Draft.' })
  await step(publishPolicy, {}, 1)
  await step(updatePolicy, { name: 'Renamed' })
  await step(updatePolicy, { rule: 'Two.' })
  await step(publishPolicy, {}, 2)
  await step(pausePolicy, {}, null)
  await step(updatePolicy, { rule: 'cel: text.contains("three")', mode: 'enforcing' })
  await step(publishPolicy, {}) // stays paused: nothing comes into force
  await step(resumePolicy, {}, 3)
  await step(restorePolicyVersion, {})
  await step(publishPolicy, {}, 4)
  await step(deletePolicy, {}, null)
})

test('deleting what is not in force begins no epoch', async () => {
  const [draft, paused] = [await house.create(), await house.createIn('paused')]
  const before = await readTraces()
  for (const policy of [draft, paused]) await house.send(deletePolicy, policy)
  const after = await readTraces()
  expect([after.epochs, after.newest]).toEqual([before.epochs, before.newest])
  expect(after.kinds).toEqual([...before.kinds, 'policy_draft', 'policy_draft'])
})

test('a refused or empty change writes nothing', async () => {
  const [draft, live] = [await house.create(), await house.createIn('monitoring')]
  const before = await readTraces()
  const version = { params: { version: '1' } }
  const answers = await Promise.all([
    house.send(updatePolicy, live),
    house.send(restorePolicyVersion, live, version),
    house.send(publishPolicy, live),
    house.send(resumePolicy, live),
    house.send(pausePolicy, draft),
    house.send(publishPolicy, { ...draft, revision: 9 }),
    house.send(deletePolicy, { ...live, revision: 9 }),
    house.api.send(createPolicy, { body: { name: 'Name', rule: 'Rule.', scope: 'projects' } }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 409, 409, 409, 409, 409, 422])
  expect(await readTraces()).toEqual(before)
})

test('epochs are counted by organization, and many at once leave no gap', async () => {
  const { api } = house
  const drafts = await Promise.all(Array.from({ length: 12 }, () => house.create()))
  const other = await createOrganization('Other', api.house)
  const credential = other.adminKey
  const body = { name: 'Name', rule: 'Rule.' }
  const foreign = (await api.send(createPolicy, { body, credential })).body.id
  const foreignParams = { params: { policy_id: foreign }, body: { revision: 1 }, credential }
  await Promise.all([
    ...drafts.map((draft) => house.change(publishPolicy, draft)),
    api.send(publishPolicy, foreignParams),
  ])
  const rows = await api.db
    .selectFrom('policy_epoch')
    .select(['organization_id', 'epoch', 'policy_id'])
    .orderBy('epoch')
    .execute()
  const own = rows.filter((row) => row.organization_id !== other.organizationId)
  expect(own.map(({ epoch }) => Number(epoch))).toEqual(drafts.map((_, index) => index + 1))
  expect(new Set(own.map((row) => row.policy_id))).toEqual(new Set(drafts.map(({ id }) => id)))
  expect(rows.filter((row) => !own.includes(row))).toMatchObject([
    { epoch: '1', policy_id: foreign },
  ])
})

/** The transactions that wrote about a policy, by table. */
async function transactionsOf(id: string) {
  const { rows } = await sql<{ place: string; xid: string }>`
    select 'event' as place, xid::text from event where header ->> 'object_id' = ${id}
    union all select 'epoch', xid::text from policy_epoch where policy_id = ${id}
    union all select 'change', xid::text from config_change where object_id = ${id}`.execute(
    house.api.db,
  )
  return (place: string) => rows.filter((row) => row.place === place).map(({ xid }) => xid)
}

test('event, epoch and change are written by one transaction', async () => {
  const draft = await house.create()
  const created = (await transactionsOf(draft.id))('event')
  const { length } = created
  await house.change(publishPolicy, draft)
  const written = await transactionsOf(draft.id)
  expect(written('event')).toHaveLength(2)
  const [published] = written('event').filter((xid) => !created.includes(xid))
  expect(published).toMatch(/^\d+$/)
  expect(written('epoch')).toEqual([published])
  expect(written('change').slice(length)).toEqual([published])
})

const counted = ['event', 'config_change', 'policy_epoch', 'policy_version', 'idempotency_key']

const countRows = async () =>
  Promise.all(
    counted.map(async (table) => {
      const { rows } = await sql<{ count: string }>`
        select count(*) from ${sql.table(table)}`.execute(house.api.db)
      return Number(rows[0]?.count)
    }),
  )

test.each(['policy_epoch', 'config_change', 'event', 'policy_version'])(
  '500: when writing %s fails, nothing of the change is left, and it can be made later',
  async (table) => {
    const { db } = house.api
    const live = await house.createIn('monitoring')
    const policy = await house.change(updatePolicy, live, { rule: 'Next.' })
    const before = await countRows()
    await sql`create trigger broken before insert on ${sql.table(table)}
      for each row execute function refuse_change()`.execute(db)
    for (const headers of [{}, { 'idempotency-key': 'k' }]) {
      const failed = await house.send(publishPolicy, policy, { headers })
      expect([failed.status, failed.body.error.code]).toEqual([500, 'internal_error'])
    }
    expect(await house.read(policy)).toEqual(policy)
    expect(await countRows()).toEqual(before)
    await sql`drop trigger broken on ${sql.table(table)}`.execute(db)
    const headers = { 'idempotency-key': 'k' }
    expect((await house.send(publishPolicy, policy, { headers })).status).toBe(200)
    expect(await countRows()).toEqual(before.map((count) => count + 1))
    expect((await house.send(publishPolicy, policy, { headers })).status).toBe(200) // a replay
    expect(await countRows()).toEqual(before.map((count) => count + 1))
  },
)

test('the event of a policy says which: id, name, revision and version', async () => {
  const draft = await house.create({ name: 'First' })
  const renamed = await house.change(updatePolicy, draft, { name: 'Second' })
  const published = await house.change(publishPolicy, renamed)
  const edited = await house.change(updatePolicy, published, { rule: 'Other.' })
  const restored = await house.send(restorePolicyVersion, edited, { params: { version: '1' } })
  await house.send(deletePolicy, { ...edited, revision: edited.revision + 1 })
  expect(restored.status).toBe(200)
  const events = await house.api.db.selectFrom('event').select('header').orderBy('seq').execute()
  const said = events.slice(1).map(({ header }) => header)
  const facts = (policy_name: string, revision: number, version: number | null) => ({
    policy_id: draft.id,
    object_id: draft.id,
    policy_name,
    revision,
    version,
  })
  expect(said).toMatchObject([
    { action: 'created', ...facts('First', 1, null) },
    { action: 'updated', ...facts('Second', 2, null) },
    { action: 'published', ...facts('Second', 3, 1) },
    { action: 'updated', ...facts('Second', 4, 1) },
    { action: 'updated', ...facts('Second', 5, 1), restored_version: 1 },
    { action: 'deleted', ...facts('Second', 5, 1) },
  ])
})
