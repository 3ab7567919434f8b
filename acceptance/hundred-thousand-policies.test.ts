import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

import { listPolicies } from '@gatehouse/contract/policy'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Child, startChild } from './support/baseline/child.ts'
import { bestRatio, timingOf } from './support/baseline/ratio.ts'
import { startChurn } from './support/policies/churn.ts'
import type { Walk, Walked } from './support/policies/list-walk.ts'
import { useStack } from './support/use-stack.ts'

// An organization with 100,000 policies can list them all while other clients create and delete policies, and no
// page costs much more than a page of a table that has only one.

const stack = useStack({ models: null, environment: { POLICIES_MAX: '1000000' } })
let database: pg.Client
let bareServer: Child
let walker: Child
let baselineAddress: string

/** A table with one page of policies, and only the columns that a list shows. */
const onePage = `create table baseline_page as select id, name, description, state, revision, current_version,
  published_sha256, draft_sha256, created_at, updated_at from policy limit 100`

beforeAll(async () => {
  const databaseUrl = stack().database.url
  database = new pg.Client({ connectionString: databaseUrl })
  await database.connect()
  const seed = new URL('../service/src/testing/hundred-thousand-policies.sql', import.meta.url)
  await database.query(await readFile(seed, 'utf8'))
  await database.query(onePage)
  // Otherwise the database would do this during the measurement.
  await database.query('vacuum analyze')
  await database.query('checkpoint')
  await promisify(execFile)('sync')
  bareServer = startChild(new URL('support/baseline/bare-list-server.ts', import.meta.url))
  const statement = 'select * from baseline_page'
  const served = await bareServer.request<{ address: string }>({ databaseUrl, statement })
  baselineAddress = served.address
  walker = startChild(new URL('support/policies/list-walk.ts', import.meta.url))
}, 900_000)
afterAll(async () => {
  walker.stop()
  bareServer.stop()
  await database.end()
})

const isListed = 'organization_id = $1 and deleted_at is null'
type Row = { id: string; revision: number }

async function readPolicies(rest = ''): Promise<Row[]> {
  const text = `select id, revision from policy where ${isListed} ${rest}`
  return (await database.query<Row>(text, [stack().description.organization_id])).rows
}

const idsOf = (rows: readonly Row[]) => new Set(rows.map(({ id }) => id))

/**
 * Policies to delete during a walk, the last one first. Of those in force there are a few: deleting one makes the service
 * build what is in force anew, during which pages wait, and p99 must not depend on how many a machine gets to.
 */
async function chooseVictims(): Promise<Row[]> {
  const live = await readPolicies(
    "and state in ('monitoring', 'enforcing') order by random() limit 3",
  )
  const drafts = await readPolicies("and state = 'draft' order by random() limit 5000")
  const [first, second, third] = [drafts.splice(0, 30), drafts.splice(0, 30), drafts.splice(0, 30)]
  return [...drafts, live[0]!, ...first, live[1]!, ...second, live[2]!, ...third]
}

const pagesPerStep = 4

/** Walks the whole list while other clients change it; returns how long its pages took. */
async function walkDuringChanges(order: Walk['order']) {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  const before = await readPolicies()
  const churn = startChurn({ baseUrl, credential, clients: 4 }, await chooseVictims())
  const address = `${baseUrl}${listPolicies.path}`
  const walk = { address, key: credential, order, baselineAddress } satisfies Walk
  let pages = 0
  const walking = walker.request<Walked>(walk, () => {
    if (++pages % pagesPerStep === 0) churn.step()
  })
  await Promise.allSettled([walking])
  const { created, deleted } = await churn.stop()
  const { ids, pageMs, baselineMs, cursorsDeleted } = await walking
  const after = await readPolicies()

  // A policy that existed throughout is listed exactly once; one created or deleted meanwhile, at most once.
  const [listed, old, left] = [new Set(ids), idsOf(before), idsOf(after)]
  expect([...old].filter((id) => left.has(id) && !listed.has(id))).toEqual([])
  expect(ids.filter((id) => !old.has(id) && !created.has(id))).toEqual([])
  expect(listed.size).toBe(ids.length)
  const sorted = ids.toSorted()
  expect(ids).toEqual(order === 'asc' ? sorted : sorted.toReversed())
  // The list did change meanwhile, and pages did start after deleted policies.
  expect(Math.min(created.size, deleted)).toBeGreaterThan(20)
  expect(cursorsDeleted).toBeGreaterThan(90)
  console.log(
    `${order}: ${pageMs.length} pages while ${created.size} policies were created and ${deleted} deleted,`,
    `and ${cursorsDeleted} cursors`,
  )
  return { measured: timingOf(pageMs), baseline: timingOf(baselineMs) }
}

const bounds = { p50: 6, p99: 10 }

test.each(['asc', 'desc'] as const)(
  `a full listing, %s, during changes: every policy exactly once, pages at most ${bounds.p99} times a bare page at p99`,
  async (order) => {
    const best = await bestRatio(bounds, 6, () => walkDuringChanges(order))
    expect(best.p50).toBeLessThanOrEqual(bounds.p50)
    expect(best.p99).toBeLessThanOrEqual(bounds.p99)
  },
  1_800_000,
)
