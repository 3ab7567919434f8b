import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import type { Page } from '#platform/keyset.ts'
import { openSeeded } from '#testing/plans.ts'

import { findPolicy, findPolicyPosition, listPolicies, lockPolicy } from './policy-store.ts'
import { draftPolicy } from './policy.ts'
import { readProcessGroups } from './rollout/rollout-store.ts'
import { findVersion, findVersionNumber, listVersions } from './versions/version-store.ts'

// With 100,000 policies in one organization every query of an endpoint still goes through an index.

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
let plansOf: (typeof seeded)['plansOf']

beforeAll(async () => {
  seeded = await openSeeded('hundred-thousand-policies.sql')
  ;({ db, plansOf } = seeded)
}, 900_000) // only detects a hang

afterAll(() => seeded[Symbol.asyncDispose]())

const organizationId = `org_${'1'.padStart(24, '0')}`
const policyId = `pol_${'50050'.padStart(24, '0')}`
const key = { organizationId, policyId }
const after = { id: policyId, created_at: new Date('2026-01-01T01:23:25Z') }
const list = (page: Omit<Page, 'limit'>) => () =>
  listPolicies(db, organizationId, { ...page, limit: 100 })
const versions = (order: 'asc' | 'desc', from: number | undefined) => () =>
  listVersions(db, key, { after: from, limit: 100, order })

const lists = {
  'first page': list({ after: undefined, order: 'asc' }),
  'later page': list({ after, order: 'asc' }),
  'first page backwards': list({ after: undefined, order: 'desc' }),
  'later page backwards': list({ after, order: 'desc' }),
}

const queries: Record<string, { run: () => Promise<unknown>; index: string }> = {
  ...Object.fromEntries(
    Object.entries(lists).map(([name, run]) => [name, { run, index: 'policy_by_age' }]),
  ),
  'a cursor': {
    run: () => findPolicyPosition(db, organizationId, policyId),
    index: 'policy_pkey',
  },
  'one policy': { run: () => findPolicy(db, organizationId, policyId), index: 'policy_pkey' },
  'one policy to change': {
    run: () => db.transaction().execute((tx) => lockPolicy(tx, organizationId, policyId)),
    index: 'policy_pkey',
  },
  'versions, the newest first': {
    run: versions('desc', undefined),
    index: 'policy_version_pkey',
  },
  'versions, the next page': { run: versions('desc', 2), index: 'policy_version_pkey' },
  'versions, the oldest first': { run: versions('asc', 1), index: 'policy_version_pkey' },
  'one version': { run: () => findVersion(db, key, 1), index: 'policy_version_pkey' },
  'a cursor among versions': {
    run: () => findVersionNumber(db, key, 'polver_x'),
    index: 'policy_version_organization_id_policy_id_id_key',
  },
  'where processes stand': {
    run: () => readProcessGroups(db, key),
    index: 'policy_epoch_by_policy',
  },
}

test.each(Object.entries(queries))('%s: through its index', async (_, { run, index }) => {
  const plans = await plansOf(run)
  expect(plans.map((plan) => plan['Index Name'])).toContain(index)
  const scans = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
  const scanned = new Set(scans.map((plan) => plan['Relation Name']))
  for (const table of ['policy', 'policy_version', 'policy_epoch']) {
    expect(scanned).not.toContain(table)
  }
})

test.each(Object.entries(lists))('%s: in order, without sorting', async (_, run) => {
  const nodes = (await plansOf(run)).map((plan) => plan['Node Type'])
  expect(nodes).not.toContain('Sort')
  expect(nodes).not.toContain('Incremental Sort')
})

test('a later page starts at its position in the index and reads nothing before it', async () => {
  for (const name of ['later page', 'later page backwards'] as const) {
    const conditions = (await plansOf(lists[name])).map((plan) => plan['Index Cond'] ?? '')
    expect(conditions.join()).toContain('ROW(created_at, id)')
  }
})

test('the seed is what the service would have written', async () => {
  const policy = await findPolicy(db, organizationId, policyId)
  const { rule, mode } = policy!
  const drafted = draftPolicy(
    { name: 'any', rule, mode },
    { id: policyId, managedBy: null, now: new Date() },
  )
  expect(policy?.draft_sha256).toEqual(drafted.draft_sha256)
  expect(await findVersion(db, key, policy!.current_version!)).toMatchObject({
    sha256: policy?.published_sha256,
  })
  const states = await db
    .selectFrom('policy')
    .select(({ fn }) => ['state', fn.countAll<string>().as('count')])
    .where('organization_id', '=', organizationId)
    .groupBy('state')
    .execute()
  expect(Object.fromEntries(states.map(({ state, count }) => [state, Number(count)]))).toEqual({
    draft: 90_000,
    monitoring: 4000,
    enforcing: 4000,
    paused: 2000,
  })
})

test('a query without an index would be noticed', async () => {
  const plans = await plansOf(() =>
    db.selectFrom('policy').select('id').where('name', '=', 'Policy 4711').execute(),
  )
  expect(plans.map((plan) => plan['Node Type'])).toContain('Seq Scan')
})
