import { randomUUID } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import { createPolicy, publishPolicy, updatePolicy } from '@gatehouse/contract/policy'
import { stopProcess } from '@gatehouse/tools/service-process'
import { type DatabaseTap, startDatabaseTap } from '@gatehouse/tools/testing/database-tap'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Answer, call } from './support/call.ts'
import { expectPublished, type Recorded, recordsOf } from './support/policies/records.ts'
import { useStack } from './support/use-stack.ts'

// A process that is killed between any two statements of a publish leaves the old state or the new one.
// Version, policy, event, change, epoch and stored answer are there together or not at all.

const stack = useStack({ models: null })
let database: pg.Client
let policyId: string
let round = 0

type Tapped = { tap: DatabaseTap; baseUrl: string; kill: () => Promise<void> }
const taps: DatabaseTap[] = []
let running: Tapped
/** Started while the one before it is being killed: each start takes a second. */
let spare: Promise<Tapped>

async function startTapped(): Promise<Tapped> {
  const tap = await startDatabaseTap(stack().database.url)
  const environment = { DATABASE_URL: tap.url, DATABASE_POOL_SIZE: '2' }
  const { baseUrl, child } = await stack().startApi(`tapped-${taps.push(tap)}`, environment)
  return { tap, baseUrl, kill: () => stopProcess(child, 'SIGKILL') }
}

beforeAll(async () => {
  database = new pg.Client({ connectionString: stack().database.url })
  await database.connect()
  policyId = await preparePolicy()
  running = await startTapped()
  spare = startTapped()
})

afterAll(async () => {
  await spare.catch(() => undefined)
  for (const tap of taps) tap.stop()
  await database.end()
})

/** A published policy with as many versions as are kept: its next publish does all that one can do. */
async function preparePolicy(): Promise<string> {
  const { base_url, admin_key: credential, project_id } = stack().description
  const body = { name: 'Kindness', rule: 'v1', scope: 'projects', project_ids: [project_id] }
  const created = await call(base_url, createPolicy, { credential, body })
  const { id } = createPolicy.response.parse(created.json)
  await publish(base_url, id, 1)
  await database.query(
    `insert into policy_version
     select organization_id, policy_id, number, 'polver_' || lpad(number::text, 24, '0'),
       rule, direction, mode, scope, project_ids, match_threshold_basis_points, sha256, published_at
     from policy_version, generate_series(2, 200) as number where policy_id = $1`,
    [id],
  )
  await database.query('update policy set current_version = 200 where id = $1', [id])
  return id
}

async function publish(baseUrl: string, id: string, revision: number, key?: string) {
  return call(baseUrl, publishPolicy, {
    credential: stack().description.admin_key,
    params: { policy_id: id },
    body: { revision },
    ...(key && { headers: { 'idempotency-key': key } }),
  })
}

/** Another rule and another mode than the published version's. */
async function editDraft(): Promise<Recorded> {
  const { base_url, admin_key: credential } = stack().description
  const { policy } = await recordsOf(database, policyId)
  const mode = policy.mode === 'monitoring' ? 'enforcing' : 'monitoring'
  const body = { revision: policy.revision, rule: `cel: text.contains("round ${++round}")`, mode }
  const sent = { credential, params: { policy_id: policyId }, body }
  expect((await call(base_url, updatePolicy, sent)).status).toBe(200)
  return recordsOf(database, policyId)
}

/** A process that was killed takes its connections with it. */
function ifGone(error: unknown): undefined {
  if (error instanceof TypeError) return undefined
  throw error
}

type Place = { statement: number; when: 'before' | 'after' }
type Outcome = 'old' | 'new'
type Kill = { before: Recorded; key: string | undefined; outcome: Outcome }

/** Publishes a new draft and kills the process at the given place; undefined if it never gets there. */
async function killAt(place: Place, key?: string) {
  const before = await editDraft()
  const { tap, baseUrl, kill } = running
  tap.arm({ ...place, kill })
  const answer = await publish(baseUrl, policyId, before.policy.revision, key).catch(ifGone)
  if (answer) {
    expect(answer.status).toBe(200)
    expectPublished(before, await recordsOf(database, policyId), key)
    expect(tap.statements.at(-1)).toBe('commit')
    return undefined
  }
  expect(tap.statements, 'it died elsewhere').toHaveLength(place.statement + 1)
  tap.stop()
  await untilEnded(tap.backendPids)
  running = await spare
  spare = startTapped()
  const outcome = await outcomeOf(before, key)
  return { before, outcome, statement: tap.statements.at(-1) ?? '' }
}

/** Whoever reads too early would see what PostgreSQL is still undoing. */
async function untilEnded(pids: readonly number[]) {
  const text = 'select pid from pg_stat_activity where pid = any($1)'
  const count = async () => (await database.query(text, [pids])).rowCount
  expect(pids.length).toBeGreaterThan(0)
  await expect.poll(count, { interval: 5, timeout: 5000 }).toBe(0)
}

/** There is no third possibility. */
async function outcomeOf(before: Recorded, key: string | undefined): Promise<Outcome> {
  const after = await recordsOf(database, policyId)
  if (isDeepStrictEqual(after, before)) return 'old'
  expectPublished(before, after, key)
  return 'new'
}

/** Kills before every statement, and after the last one: after any other, the database is as before the next. */
async function killEverywhere(
  key: () => string | undefined,
  afterwards: (kill: Kill) => Promise<void> = async () => undefined,
) {
  const kills: { statement: string; when: Place['when']; outcome: Outcome }[] = []
  const kill = async (place: Place) => {
    const used = key()
    const killed = await killAt(place, used)
    if (!killed) return false
    await afterwards({ ...killed, key: used })
    kills.push({ ...killed, when: place.when })
    return true
  }
  let statement = 0
  while (await kill({ statement, when: 'before' })) statement++
  expect(await kill({ statement: statement - 1, when: 'after' })).toBe(true)
  return kills
}

/** Returns the statements of a publish. */
function expectOldUntilCommitted(kills: Awaited<ReturnType<typeof killEverywhere>>) {
  for (const { statement, when, outcome } of kills) {
    console.log(`${when.padEnd(6)} ${outcome} ${statement.slice(0, 60)}`)
    expect(outcome, `${when} ${statement}`).toBe(when === 'after' ? 'new' : 'old')
  }
  const statements = kills.map(({ statement }) => statement)
  expect(statements.slice(-2)).toEqual(['commit', 'commit'])
  return statements.slice(0, -1)
}

/** What the tests are about must be among what they killed. */
function expectAllWrites(statements: readonly string[]) {
  expect([statements[0], statements.at(-1)]).toEqual(['begin', 'commit'])
  for (const write of [
    'insert into "policy_version"',
    'update "policy"',
    'insert into event',
    'insert into "config_change"',
    'update "organization"',
    'insert into "policy_epoch"',
    'delete from "policy_version"',
  ]) {
    expect(statements.join('\n')).toContain(write)
  }
}

// Without a key it is the same transaction with three statements less, and each kill takes three seconds.
test.skipIf(process.env['LONG_TESTS'] !== '1')(
  'killed between any two statements of a publish: the old state or the new one (--long)',
  async () => {
    const statements = expectOldUntilCommitted(await killEverywhere(() => undefined))
    expect(statements.length).toBeGreaterThanOrEqual(12)
    expectAllWrites(statements)
  },
)

const isReplay = ({ headers }: Answer) => headers.get('idempotent-replayed') === 'true'

test('with an Idempotency-Key: also the stored answer, and a retry leads to exactly one version', async () => {
  const kills = await killEverywhere(randomUUID, async ({ before, key, outcome }) => {
    const { revision } = before.policy
    const retry = await publish(running.baseUrl, policyId, revision, key)
    expect([retry.status, isReplay(retry)]).toEqual([200, outcome === 'new'])
    const again = await publish(running.baseUrl, policyId, revision, key)
    expect([again.status, isReplay(again), again.text]).toEqual([200, true, retry.text])
    const after = await recordsOf(database, policyId)
    expectPublished(before, after, key)
    const { published } = publishPolicy.response.parse(retry.json)
    expect(published).toMatchObject({
      version: after.policy.current_version,
      sha256: after.policy.published_sha256,
    })
  })
  const statements = expectOldUntilCommitted(kills)
  expect(statements.length).toBeGreaterThanOrEqual(15)
  expectAllWrites(statements)
  expect(statements.join('\n')).toContain('update "idempotency_key"')
})
