import { sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import { openSeeded } from '#testing/plans.ts'

import { findKeyByHash, findTenancy } from './credential-store.ts'
import { countKeys, findKeyPosition, hasKeyManager, listKeys } from './keys/key-store.ts'
import { listProjects } from './projects/project-store.ts'

// With a million keys every query on the way of a request still goes through an index.

let seeded: Awaited<ReturnType<typeof openSeeded>>
let db: Db
let plansOf: (typeof seeded)['plansOf']

beforeAll(async () => {
  seeded = await openSeeded('million-keys.sql')
  ;({ db, plansOf } = seeded)
}, 900_000) // only detects a hang

afterAll(() => seeded[Symbol.asyncDispose]())

const organizationId = `org_${'7'.padStart(24, '0')}`
const projectId = `proj_${'7'.padStart(24, '0')}`
const admin = { organizationId, projectId: null }
const project = { organizationId, projectId }
const position = { id: 'key_', created_at: new Date('2026-01-05') }
const hash = (number: string) => sql<Buffer>`select sha256(${number}::text::bytea) as hash`

const queries: Record<string, { run: () => Promise<unknown>; index: string }> = {
  'key lookup': {
    run: async () => {
      const { rows } = await hash('4711').execute(seeded.plainDb)
      const found = await findKeyByHash(db, [(rows[0] as unknown as { hash: Buffer }).hash])
      expect(found?.id).toBe(`key_${'4711'.padStart(24, '0')}`)
    },
    index: 'api_key_by_hash',
  },
  'first page of administrator keys': {
    run: () => listKeys(db, admin, { after: undefined, limit: 100, order: 'asc' }),
    index: 'admin_key_by_age',
  },
  'later page of administrator keys': {
    run: () => listKeys(db, admin, { after: position, limit: 100, order: 'asc' }),
    index: 'admin_key_by_age',
  },
  'administrator keys backwards': {
    run: () => listKeys(db, admin, { after: position, limit: 100, order: 'desc' }),
    index: 'admin_key_by_age',
  },
  'first page of project keys': {
    run: () => listKeys(db, project, { after: undefined, limit: 100, order: 'asc' }),
    index: 'project_key_by_age',
  },
  'later page of project keys': {
    run: () => listKeys(db, project, { after: position, limit: 100, order: 'desc' }),
    index: 'project_key_by_age',
  },
  'a cursor': { run: () => findKeyPosition(db, admin, 'key_x'), index: 'api_key_pkey' },
  'count of administrator keys': {
    run: () => db.transaction().execute((tx) => countKeys(tx, admin)),
    index: 'admin_key_by_age',
  },
  'is there a manager': {
    run: () => db.transaction().execute((tx) => hasKeyManager(tx, organizationId, new Date())),
    index: 'admin_key_by_age',
  },
  'projects of an organization': {
    run: () => listProjects(db, organizationId, { after: undefined, limit: 100, order: 'asc' }),
    index: 'project_by_age',
  },
  'standing of an organization': {
    run: () => findTenancy(db, organizationId, null),
    index: 'project_default',
  },
}

test.each(Object.entries(queries))('%s uses its index', async (_, { run, index }) => {
  const plans = await plansOf(run)
  expect(plans.map((plan) => plan['Index Name'])).toContain(index)
  const scans = plans.filter((plan) => plan['Node Type'] === 'Seq Scan')
  expect(scans.map((plan) => plan['Relation Name'])).not.toContain('api_key')
})

test('the lists come out of their index in order, without sorting', async () => {
  for (const scope of [admin, project]) {
    const page = { after: position, limit: 100, order: 'asc' } as const
    const plans = await plansOf(() => listKeys(db, scope, page))
    expect(plans.map((plan) => plan['Node Type'])).not.toContain('Sort')
  }
})

test('a query without an index would be noticed', async () => {
  const plans = await plansOf(() =>
    db.selectFrom('api_key').select('id').where('name', '=', 'Key 4711').execute(),
  )
  expect(plans.map((plan) => plan['Node Type'])).toContain('Seq Scan')
})
