import {
  deletePolicy,
  listPolicies,
  listPolicyVersions,
  type Policy,
  publishPolicy,
  restorePolicyVersion,
  retrievePolicyVersion,
  updatePolicy,
} from '@gatehouse/contract/policy'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'
import { createTestClock } from '#testing/test-gateway.ts'

let clock: ReturnType<typeof createTestClock>
let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  clock = createTestClock()
  house = await createPolicyApi({ now: clock.now })
})

async function createSome(count: number): Promise<Policy[]> {
  const made: Policy[] = []
  for (let index = 0; index < count; index++) {
    made.push(await house.create({ name: `${index}` }))
    clock.pass(1)
  }
  return made
}

type Query = Record<string, string>
type List = typeof listPolicies | typeof listPolicyVersions

/** All pages of a list, in the order they come. */
async function readAll(list: List, query: Query, params: Record<string, string> = {}) {
  const seen: string[] = []
  for (let after: string | null = null; ;) {
    const page: Query = { ...query, ...(after && { after }) }
    const { status, body } = await house.api.send(list, { params, query: page })
    expect(status).toBe(200)
    expect([body.first_id, body.last_id]).toEqual([body.data[0]?.id, body.data.at(-1)?.id])
    seen.push(...body.data.map(({ id }) => id))
    if (!body.has_more) return seen
    expect(body.data).toHaveLength(Number(query['limit']))
    after = body.last_id
  }
}

async function expectInvalidCursor(list: List, after: string, params: Record<string, string> = {}) {
  const { status, body } = await house.api.send(list, { params, query: { after } })
  const { code, param } = body.error
  expect([status, code, param], after).toEqual([400, 'invalid_cursor', 'query.after'])
}

test('200: an empty list has no ids', async () => {
  const { body } = await house.api.send(listPolicies)
  const empty = { object: 'list', data: [], has_more: false, first_id: null, last_id: null }
  expect(body).toEqual(empty)
  const policy_id = (await house.create()).id
  expect((await house.api.send(listPolicyVersions, { params: { policy_id } })).body).toEqual(empty)
})

test('200: list items are policies without the keys draft and published', async () => {
  const draft = await house.create()
  clock.pass(1)
  const published = await house.createIn('enforcing')
  const edited = await house.change(updatePolicy, published, { rule: 'Other.' })
  const { body } = await house.api.send(listPolicies)
  const items = [draft, edited].map(({ draft: _, published: __, ...summary }) => summary)
  expect(body.data).toStrictEqual(items)
  expect(body).toMatchObject({ object: 'list', has_more: false })
})

test('pages: by age, no duplicate and no gap in both orders, the oldest first unless asked', async () => {
  const made = (await createSome(7)).map(({ id }) => id)
  expect(await readAll(listPolicies, {})).toEqual(made)
  expect(await readAll(listPolicies, { limit: '3' })).toEqual(made)
  expect(await readAll(listPolicies, { limit: '7', order: 'asc' })).toEqual(made)
  expect(await readAll(listPolicies, { limit: '2', order: 'desc' })).toEqual(made.toReversed())
})

test('pages: policies of one millisecond come by id, and an edit moves none', async () => {
  const made: Policy[] = []
  for (let index = 0; index < 5; index++) made.push(await house.create())
  clock.pass(1000)
  await house.change(updatePolicy, made[2]!, { name: 'Edited' })
  const ids = made.map(({ id }) => id).toSorted()
  expect(await readAll(listPolicies, { limit: '2' })).toEqual(ids)
  expect(await readAll(listPolicies, { limit: '2', order: 'desc' })).toEqual(ids.toReversed())
})

test('a page has 20 policies unless asked for 1 to 100', async () => {
  await createSome(21)
  const pages = [{}, { limit: '1' }, { limit: '100' }].map(async (query) => {
    const { body } = await house.api.send(listPolicies, { query })
    return [body.data.length, body.has_more]
  })
  expect(await Promise.all(pages)).toEqual([
    [20, true],
    [1, true],
    [21, false],
  ])
})

test('422: bad limits, orders and cursors that are too long', async () => {
  const { id } = await house.create()
  const bad: [Query, string][] = [
    ...['0', '101', '-1', '1.5', 'x', '', '1e1', ' 5'].map((limit): [Query, string] => [
      { limit },
      'query.limit',
    ]),
    [{ order: 'up' }, 'query.order'],
    [{ order: '' }, 'query.order'],
    [{ after: '' }, 'query.after'],
    [{ after: 'x'.repeat(201) }, 'query.after'],
  ]
  for (const list of [listPolicies, listPolicyVersions]) {
    for (const [query, param] of bad) {
      const { status, body } = await house.api.send(list, { params: { policy_id: id }, query })
      const seen = [status, body.error.code, body.error.param]
      expect(seen, JSON.stringify(query)).toEqual([422, 'invalid_parameter', param])
    }
  }
})

test('the cursor of a deleted policy keeps its place in both orders', async () => {
  const made = await createSome(5)
  const ids = made.map(({ id }) => id)
  await house.send(deletePolicy, made[2]!)
  const [after, rest] = [ids[2]!, { limit: '100' }]
  expect(await readAll(listPolicies, rest)).toEqual(ids.toSpliced(2, 1))
  const behind = async (order: string) =>
    (await house.api.send(listPolicies, { query: { after, order } })).body.data.map(({ id }) => id)
  expect(await behind('asc')).toEqual(ids.slice(3))
  expect(await behind('desc')).toEqual(ids.slice(0, 2).toReversed())
})

test('400: a cursor that names no policy of the organization', async () => {
  const { api } = house
  const policy = await house.createIn('monitoring')
  const { adminKey: credential } = await createOrganization('Other', api.house)
  const foreign = await api.send(listPolicies, { credential, query: { after: policy.id } })
  expect([foreign.status, foreign.body.error.code]).toEqual([400, 'invalid_cursor'])
  const { organizationId, projectId } = api.organization
  for (const after of [
    'x',
    'x'.repeat(200),
    'pol_000000000000000000000000',
    policy.id.toUpperCase(),
    `${policy.id} `,
    projectId,
    organizationId,
    policy.published!.id,
  ]) {
    await expectInvalidCursor(listPolicies, after)
  }
})

/** A policy with versions 1 to `count`, all published in one millisecond. */
async function createVersions(count: number) {
  let policy = await house.createIn('monitoring', { rule: 'Rule 1' })
  const versions = [policy.published!]
  for (let number = 2; number <= count; number++) {
    policy = await house.publishNext(policy, `Rule ${number}`)
    versions.push(policy.published!)
  }
  return { policy, versions, params: { policy_id: policy.id } }
}

test('200: versions are listed newest first; only the published one is current', async () => {
  const { versions, params } = await createVersions(3)
  const { body } = await house.api.send(listPolicyVersions, { params })
  const shown = versions.map((each) => ({ ...each, current: each.version === 3 }))
  expect(body).toEqual({
    object: 'list',
    data: shown.toReversed(),
    has_more: false,
    first_id: shown[2]!.id,
    last_id: shown[0]!.id,
  })
  expect(body.data.map((each) => (each as unknown as { rule: string }).rule)).toEqual([
    'Rule 3',
    'Rule 2',
    'Rule 1',
  ])
  for (const version of shown) {
    const one = { ...params, version: String(version.version) }
    expect((await house.api.send(retrievePolicyVersion, { params: one })).body).toEqual(version)
  }
})

test('versions with the same content have the same hash, whatever lies between', async () => {
  const { policy, versions } = await createVersions(2)
  const again = await house.publishNext(policy, 'Rule 1')
  expect(again.published).toMatchObject({ version: 3, sha256: versions[0]!.sha256 })
  expect(versions[1]!.sha256).not.toBe(versions[0]!.sha256)
})

test('pages of versions: no duplicate and no gap in both orders, by number', async () => {
  const { versions, params } = await createVersions(12)
  const ids = versions.map(({ id }) => id)
  expect(await readAll(listPolicyVersions, { limit: '5' }, params)).toEqual(ids.toReversed())
  const [asc, desc] = [
    { limit: '5', order: 'asc' },
    { limit: '4', order: 'desc' },
  ]
  expect(await readAll(listPolicyVersions, asc, params)).toEqual(ids)
  expect(await readAll(listPolicyVersions, desc, params)).toEqual(ids.toReversed())
})

test('400: a cursor that names no version of this policy', async () => {
  const { policy, params } = await createVersions(1)
  const other = await house.createIn('monitoring')
  for (const after of ['x', '1', policy.id, other.published!.id]) {
    await expectInvalidCursor(listPolicyVersions, after, params)
  }
})

test('404: a version that does not exist', async () => {
  const { policy, params } = await createVersions(1)
  await house.publishNext(await house.create(), 'Other.')
  for (const version of ['2', '2147483647']) {
    const read = await house.api.send(retrievePolicyVersion, { params: { ...params, version } })
    const restored = await house.send(restorePolicyVersion, policy, { params: { version } })
    for (const { status, body } of [read, restored]) {
      expect([status, body.error.code]).toEqual([404, 'version_not_found'])
    }
  }
})

test('200: restoring copies a version into the draft; publishing it is a step of its own', async () => {
  const { policy, versions } = await createVersions(2)
  const renamed = await house.change(updatePolicy, policy, { name: 'Renamed' })
  clock.pass(5000)
  const restore = async (from: Policy, version: string) =>
    (await house.send(restorePolicyVersion, from, { params: { version } })).body
  const restored = await restore(renamed, '1')
  expect(restored).toEqual({
    ...renamed,
    revision: renamed.revision + 1,
    updated_at: renamed.updated_at + 5,
    has_unpublished_changes: true,
    draft: { ...policy.draft, rule: 'Rule 1', base_version: 1 },
  })
  const back = restored as unknown as Policy
  expect(await restore(back, '1')).toEqual(restored) // it is there already: the same revision
  const published = await house.change(publishPolicy, back)
  expect(published).toMatchObject({
    name: 'Renamed',
    current_version: 3,
    draft: { rule: 'Rule 1', base_version: 3 },
    published: { version: 3, rule: 'Rule 1', sha256: versions[0]!.sha256 },
  })
})

/** As if the policy had been published until `newest`; each version is a copy of the first. */
async function seedVersions({ id }: { id: string }, newest: number) {
  await sql`
    insert into policy_version (organization_id, policy_id, version, id, rule, direction, mode,
      scope, project_ids, match_threshold_basis_points, sha256, published_at)
    select organization_id, policy_id, number, 'polver_' || lpad(number::text, 24, '0'), rule,
      direction, mode, scope, project_ids, match_threshold_basis_points, sha256, published_at
    from policy_version, generate_series(2, ${newest}::integer) as number
    where policy_id = ${id} and version = 1`.execute(house.api.db)
  await house.api.db
    .updateTable('policy')
    .set({ current_version: newest, base_version: newest })
    .where('id', '=', id)
    .execute()
}

test('the last 200 versions are kept, the current one among them', async () => {
  const first = await house.createIn('monitoring')
  const other = await house.createIn('monitoring')
  await seedVersions(first, 199)
  const numbers = async () => {
    const rows = house.api.db.selectFrom('policy_version').select('version').orderBy('version')
    return (await rows.where('policy_id', '=', first.id).execute()).map(({ version }) => version)
  }
  const range = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, index) => from + index)
  let policy = await house.publishNext(await house.read(first), 'The 200th.')
  expect(await numbers()).toEqual(range(1, 200))
  policy = await house.publishNext(policy, 'The 201st.')
  expect(await numbers()).toEqual(range(2, 201))
  policy = await house.publishNext(policy, 'The 202nd.')
  expect(await numbers()).toEqual(range(3, 202))
  expect(policy).toMatchObject({ current_version: 202, published: { version: 202, current: true } })
  expect(await house.read(other)).toEqual(other)
  const params = { policy_id: first.id, version: '2' }
  const pruned = await house.api.send(retrievePolicyVersion, { params })
  expect([pruned.status, pruned.body.error.code]).toEqual([404, 'version_not_found'])
  const listed = await readAll(listPolicyVersions, { limit: '100' }, { policy_id: first.id })
  expect(listed).toHaveLength(200)
})
