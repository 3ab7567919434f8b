import { deletePolicy, listPolicyVersions } from '@gatehouse/contract/policy'
import { type RawBuilder, sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createPolicyApi } from '#testing/policy-calls.ts'

// The database itself refuses changes to audit records, whichever role or statement tries them.

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

/** integrity_constraint_violation, as the triggers raise it; a broken statement has another code. */
async function expectRefused(statement: RawBuilder<unknown>, says: RegExp) {
  const { sql: text } = statement.compile(house.api.db)
  const refused = expect(statement.execute(house.api.db), text).rejects
  await refused.toMatchObject({ code: '23000', message: expect.stringMatching(says) as string })
}

/** Everything in a table, so that a test can check that nothing in it has changed. */
const contentOf = async (table: string) =>
  (await sql`select row.*::text from ${sql.table(table)} as row order by 1`.execute(house.api.db))
    .rows

async function columnsOf(table: string) {
  const { rows } = await sql<{ name: string }>`
    select column_name as name from information_schema.columns
    where table_name = ${table} order by 1`.execute(house.api.db)
  return rows.map(({ name }) => name)
}

/** Another value for every column: each of them must be refused by itself. */
async function expectColumnsKept(table: string, values: Record<string, RawBuilder<unknown>>) {
  const before = await contentOf(table)
  expect(Object.keys(values).toSorted()).toEqual(await columnsOf(table))
  for (const [column, value] of Object.entries(values)) {
    const set = sql`${sql.ref(column)} = ${value}`
    await expectRefused(
      sql`update ${sql.table(table)} set ${set}`,
      /^UPDATE of \w+ is not allowed: its rows are immutable$/,
    )
  }
  expect(await contentOf(table)).toEqual(before)
}

test('no column of a published version can be updated', async () => {
  await house.createIn('monitoring')
  await expectColumnsKept('policy_version', {
    organization_id: sql`'org_other'`,
    policy_id: sql`'pol_other'`,
    version: sql`version + 1`,
    id: sql`'polver_other'`,
    rule: sql`'Other.'`,
    direction: sql`'request'`,
    mode: sql`'enforcing'`,
    scope: sql`'organization'`,
    project_ids: sql`array['proj_other']`,
    match_threshold_basis_points: sql`1`,
    pattern_costs: sql`array[1]`,
    sha256: sql`sha256('')`,
    published_at: sql`now() - interval '1 day'`,
  })
  await expectRefused(
    sql`insert into policy_version select * from policy_version
      on conflict (organization_id, policy_id, version) do update set rule = 'Other.'`,
    /^UPDATE of policy_version is not allowed/,
  )
})

test('a version is deleted only when 200 newer ones exist', async () => {
  const { id } = await house.createIn('monitoring')
  await sql`
    insert into policy_version
    select organization_id, policy_id, number, 'polver_' || lpad(number::text, 24, '0'), rule,
      direction, mode, scope, project_ids, match_threshold_basis_points, sha256, published_at
    from policy_version, generate_series(2, 205) as number`.execute(house.api.db)
  await sql`update policy set current_version = 205`.execute(house.api.db)
  const numbers = async () => {
    const rows = house.api.db.selectFrom('policy_version').select('version').orderBy('version')
    return (await rows.execute()).map(({ version }) => version)
  }
  const remove = (which: RawBuilder<unknown>) => sql`delete from policy_version where ${which}`
  const early = /^version \d+ of policy pol_\w+ is one of the last 200 and must be kept$/
  for (const version of [6, 7, 204, 205])
    await expectRefused(remove(sql`version = ${version}`), early)
  await expectRefused(remove(sql`version <= 6`), early)
  await expectRefused(remove(sql`true`), early)
  await expectRefused(sql`delete from policy_version`, early)
  expect(await numbers()).toHaveLength(205)
  await remove(sql`version <= 5`).execute(house.api.db)
  expect(await numbers()).toEqual(Array.from({ length: 200 }, (_, index) => index + 6))
  await expectRefused(remove(sql`version = 6`), early)
  const listed = await house.api.send(listPolicyVersions, { params: { policy_id: id } })
  expect(listed.body.data).toHaveLength(20)
})

test('the versions of a deleted policy stay, and so does its row', async () => {
  const policy = await house.createIn('monitoring')
  await house.send(deletePolicy, policy)
  await expectRefused(sql`delete from policy_version`, /must be kept$/)
  const removing = sql`delete from policy`.execute(house.api.db)
  await expect(removing).rejects.toMatchObject({ code: '23503' }) // something refers to it
})

test('tables of record are not truncated, also not by way of another table', async () => {
  await house.createIn('monitoring')
  const tables = ['policy_version', 'policy_epoch', 'event']
  const before = await Promise.all(tables.map(contentOf))
  const refused = (table: string) => new RegExp(`^TRUNCATE of ${table} is not allowed`)
  for (const table of tables) {
    await expectRefused(sql`truncate ${sql.table(table)} cascade`, refused(table))
  }
  for (const table of ['policy', 'organization']) {
    await expectRefused(sql`truncate ${sql.table(table)} cascade`, refused(String.raw`policy_\w+`))
  }
  expect(await Promise.all(tables.map(contentOf))).toEqual(before)
})

test('the history of epochs can be neither updated nor deleted', async () => {
  await house.createIn('paused')
  await expectColumnsKept('policy_epoch', {
    organization_id: sql`'org_other'`,
    epoch: sql`epoch + 10`,
    policy_id: sql`'pol_other'`,
    version: sql`coalesce(version, 0) + 1`,
    gateway_revision: sql`coalesce(gateway_revision, 0) + 1`,
    xid: sql`'1'::xid8`,
    at: sql`now() - interval '1 day'`,
  })
  const before = await contentOf('policy_epoch')
  for (const which of [sql`true`, sql`version is null`]) {
    const statement = sql`delete from policy_epoch where ${which}`
    await expectRefused(statement, /^DELETE of policy_epoch is not allowed/)
  }
  expect(await contentOf('policy_epoch')).toEqual(before)
})

test('no column of an event can be updated', async () => {
  await house.create()
  await expectColumnsKept('event', {
    day: sql`day - 1`,
    id: sql`gen_random_uuid()`,
    seq: sql`default`,
    xid: sql`'1'::xid8`,
    shard: sql`shard + 1`,
    organization_id: sql`'org_other'`,
    kind: sql`'other'`,
    at: sql`at - interval '1 day'`,
    header: sql`header || '{"actor": "other"}'`,
    payload: sql`convert_to('{}', 'utf8')`,
    salt: sql`sha256('')`,
    payload_hash: sql`sha256('')`,
  })
})

test('the payload of an event is erased whole: with its salt, and with nothing else changed', async () => {
  await house.create()
  const refused = /^UPDATE of event\w* is not allowed/
  for (const set of [
    sql`payload = null`,
    sql`salt = null`,
    sql`payload = null, salt = sha256('')`,
    sql`payload = '', salt = null`,
    sql`payload = null, salt = null, header = '{}'`,
    sql`payload = null, salt = null, payload_hash = sha256('')`,
  ]) {
    await expectRefused(sql`update event set ${set}`, refused)
  }
  const rest = sql`select day, id, seq, xid::text, shard, organization_id, kind, at, header,
    payload_hash from event order by seq`
  const before = await rest.execute(house.api.db)
  await sql`update event set payload = null, salt = null`.execute(house.api.db)
  expect((await rest.execute(house.api.db)).rows).toEqual(before.rows)
  const left = sql`select 1 from event where payload is not null or salt is not null`
  expect((await left.execute(house.api.db)).rows).toEqual([])
  // An erased payload cannot be replaced by another one.
  await expectRefused(sql`update event set payload = '{}', salt = sha256('')`, refused)
})

test('events are not deleted, in the table or in its partitions', async () => {
  await house.create()
  const before = await contentOf('event')
  const { rows } = await sql<{ name: string }>`
    select distinct tableoid::regclass::text as name from event`.execute(house.api.db)
  for (const table of ['event', ...rows.map(({ name }) => name)]) {
    const removal = sql`delete from ${sql.table(table)}`
    await expectRefused(removal, /^DELETE of event\w* is not allowed/)
    const change = sql`update ${sql.table(table)} set kind = 'other'`
    await expectRefused(change, /^UPDATE of event\w* is not allowed/)
  }
  expect(await contentOf('event')).toEqual(before)
})
