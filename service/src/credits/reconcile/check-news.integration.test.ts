import { type RawBuilder, sql } from 'kysely'
import { afterEach, beforeEach, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createKeyHasher } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import { grantCredits, recordPayment } from '#credits/payments/payments.ts'
import { systemClock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { openOrganization } from '#testing/credit-calls.ts'
import { chargeCall } from '#testing/ledger.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { checkNews, type NewsOptions } from './check-news.ts'
import { movePoints, readPoints } from './point-store.ts'
import { reconcile } from './reconcile.ts'

// The hourly check: what it reads, what it finds, and what only a check of the whole ledger finds.

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let organizationId: string

const now = systemClock
const hashKey = createKeyHasher([{ version: 1, bytes: Buffer.alloc(32, 1) }])
const deps = () => ({
  db,
  now,
  hashKey,
  announce: createAnnouncer(now, () => undefined),
  by: operator,
})

/** Long enough ago to be counted as proven. */
const longAgo = (minutes: number) => new Date(Date.parse('2026-01-01T23:00:00Z') + minutes * 60_000)

beforeEach(async () => {
  database = await createTestDatabase()
  ;({ db } = database)
  ;({ organizationId } = await createOrganization('Example Ltd', deps()))
  await createOrganization('Nothing happens here', deps())
  await recordPayment(organizationId, { id: 'pay_1', amount: 1_000_000n }, deps())
  // As if it had been paid long ago: an entry of the last minute is not counted as proven.
  await bypassing(sql`update ledger_entry set at = '2026-01-01'`)
  for (const minute of [0, 10, 20, 70]) await charge(minute)
})
afterEach(() => database[Symbol.asyncDispose]())

const charge = (minute: number) =>
  chargeCall(db, organizationId, { id: `req_${minute}`, at: longAgo(minute) })

/** Past constraints and triggers. */
const bypassing = (...changes: RawBuilder<unknown>[]) =>
  db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    for (const change of changes) await change.execute(tx)
  })

const check = (options: Partial<NewsOptions> = {}) =>
  checkNews(db, {
    onFailure(error) {
      throw error
    },
    ...options,
  })
const found = async (options?: Partial<NewsOptions>) =>
  (await check(options)).differences.map(({ what, of }) => [what, of])

test('what was proven is not read again; what came since is', async () => {
  expect(await check()).toMatchObject({ organizations: 2, entries: 5, differenceCount: 0 })
  expect(await check()).toMatchObject({ organizations: 2, entries: 0, differenceCount: 0 })
  await charge(80)
  await charge(5000)
  expect(await check()).toMatchObject({ organizations: 2, entries: 2, differenceCount: 0 })
  expect(await check()).toMatchObject({ entries: 0 })
  expect((await reconcile(db)).differences).toEqual([])
})

test('entries of the last minute are compared, and read once more', async () => {
  await check()
  await grantCredits(organizationId, { id: 'gift_1', amount: 5n }, deps())
  for (let look = 0; look < 2; look++) {
    expect(await check()).toMatchObject({ entries: 1, differenceCount: 0 })
  }
  await bypassing(sql`update ledger_entry set amount = 6 where id = 'gift_1'`)
  expect(await found()).toEqual([['posted', null]])
})

test.each([1, 2, 3, 1000])('in steps of %i entries', async (entriesMax) => {
  expect(await check({ entriesMax })).toMatchObject({ entries: 5, differenceCount: 0 })
  await charge(90)
  await bypassing(sql`update usage_day set requests = 7 where day = '2026-01-02'`)
  expect(await found({ entriesMax })).toEqual([
    ['usage of a day', '2026-01-02 proj_1 key_1 model-1'],
  ])
})

const account = (set: string) =>
  sql`update credit_account set ${sql.raw(set)} where organization_id = ${organizationId}`

test('a balance that is changed without an entry is found in an organization without news', async () => {
  await check()
  const changes: [RawBuilder<unknown>, string[]][] = [
    [account('posted = posted + 1'), ['posted']],
    [account('used = used + 1'), ['used']],
    [account('held = held + 1'), ['held']],
    [sql`update organization set paid_micro_usd = 7 where id = ${organizationId}`, ['paid']],
    [sql`delete from credit_account where organization_id = ${organizationId}`, ['account']],
    [
      sql`insert into credit_hold values (${organizationId}, 'req_x', 0, now() - interval '1 hour', '{}')`,
      ['overdue holds'],
    ],
  ]
  for (const [change, expected] of changes) {
    await sql`create table kept as table credit_account`.execute(db)
    await bypassing(change)
    for (let look = 0; look < 2; look++) {
      expect((await found()).map(([what]) => what)).toEqual(expected)
    }
    await bypassing(
      sql`delete from credit_account`,
      sql`insert into credit_account table kept`,
      sql`update organization set paid_micro_usd = 1000000 where id = ${organizationId}`,
      sql`delete from credit_hold`,
    )
    await sql`drop table kept`.execute(db)
    expect(await found()).toEqual([])
  }
})

test('an organization without a point and without entries is compared too', async () => {
  await check()
  await bypassing(sql`update credit_account set posted = 1 where posted = 0`)
  expect(await found()).toEqual([['posted', null]])
})

test('an entry since the point that is wrong by itself is found at every check, until it is corrected', async () => {
  await check()
  const { amount } = await charge(80)
  await charge(81)
  await bypassing(
    sql`update ledger_entry set amount = amount + 1 where id = 'req_80'`,
    account('posted = posted - 1, used = used + 1'),
    sql`update usage_day set credits = credits + 1 where day = '2026-01-02'`,
  )
  for (let look = 0; look < 3; look++) expect(await found()).toEqual([['charge', 'req_80']])
  await bypassing(
    sql`update ledger_entry set amount = ${amount} where id = 'req_80'`,
    account('posted = posted + 1, used = used - 1'),
    sql`update usage_day set credits = credits - 1 where day = '2026-01-02'`,
  )
  expect(await found()).toEqual([])
  expect(await check()).toMatchObject({ entries: 0 })
})

test('damage before the point is found by a check of the whole ledger, and by every check after that', async () => {
  await check()
  await bypassing(sql`update ledger_entry set meta = meta - 'prices' where id = 'req_10'`)
  expect(await found()).toEqual([])
  const whole = (await reconcile(db)).differences
  expect(whole.map(({ of }) => of)).toEqual(['req_10'])
  for (let look = 0; look < 2; look++) expect(await found()).toEqual([['charge', 'req_10']])
  await bypassing(
    sql`update ledger_entry set meta = (select meta from ledger_entry where id = 'req_0') where id = 'req_10'`,
  )
  expect(await found()).toEqual([])
})

test('a check that began before the whole ledger was found to differ does not forget it', async () => {
  await check()
  const points = await readPoints(db, [organizationId])
  await bypassing(sql`update ledger_entry set meta = meta - 'prices' where id = 'req_10'`)
  await reconcile(db)
  await movePoints(
    db,
    [...points].map(([id, point]) => ({ organizationId: id, point })),
  )
  expect(await found()).toEqual([['charge', 'req_10']])
})

test('a clock that went back makes no difference, and its entries are counted', async () => {
  await check()
  await charge(-500)
  expect(await check()).toMatchObject({ differenceCount: 0 })
  expect(await check()).toMatchObject({ entries: 0, differenceCount: 0 })
})

test('a point that is wrong or gone makes no difference', async () => {
  const changes = [
    sql`update ledger_point set wallet = wallet + 1, day_sums = '[]'`,
    sql`update ledger_point set day_sums = '[]', written_off = 5`,
    sql`delete from ledger_point`,
  ]
  for (const [index, change] of changes.entries()) {
    await check()
    await change.execute(db)
    await charge(100 + index)
    expect(await check()).toMatchObject({ differenceCount: 0 })
    expect(await check()).toMatchObject({ entries: 0 })
  }
})

test('a check that is interrupted has kept what it had proven', async () => {
  const stopping = new AbortController()
  let rests = 0
  const interrupted = check({
    entriesMax: 1,
    signal: stopping.signal,
    async rest() {
      if (++rests === 4) stopping.abort()
    },
  })
  await expect(interrupted).rejects.toThrow(/abort/)
  const { entries } = await check()
  expect(entries).toBeGreaterThan(0)
  expect(entries).toBeLessThan(5)
})

test('checks beside each other and beside calls find nothing', async () => {
  // Enough for all calls on a slow machine.
  await grantCredits(organizationId, { id: 'gift_1', amount: 1_000_000_000n }, deps())
  let isOver = false
  let calls = 0
  const callOn = async () => {
    while (!isOver) await chargeCall(db, organizationId, { id: `req_now_${calls++}` })
  }
  const calling = callOn()
  const checkOn = async () => {
    for (let look = 0; look < 10; look++) expect(await found({ entriesMax: 7 })).toEqual([])
  }
  await Promise.all([checkOn(), checkOn(), reconcile(db), reconcile(db)])
  isOver = true
  await calling
  expect(calls).toBeGreaterThan(10)
  expect((await reconcile(db)).differences).toEqual([])
})

test('organizations without news take one statement for each hundred', async () => {
  await sql`insert into organization (id, name, created_at)
    select 'org_' || lpad(n::text, 24, '0'), 'x', now() from generate_series(1, 350) n`.execute(db)
  await check()
  let rests = 0
  const { organizations } = await check({ rest: async () => void rests++ })
  expect([organizations, rests]).toEqual([352, 4])
})

const addOrganizations = (count: number) =>
  sql`insert into organization (id, name, created_at)
    select 'org_' || lpad(n::text, 24, '0'), 'x', now() from generate_series(1, ${count}) n`.execute(
    db,
  )

/** With one entry, long enough ago to be counted as proven. */
async function openLongAgo(id: string) {
  await openOrganization(db, id, 1_000_000n)
  await bypassing(sql`update ledger_entry set at = '2026-01-01' where organization_id = ${id}`)
}

test('no transaction stays open while the check of a whole ledger rests', async () => {
  await check()
  await bypassing(account('posted = posted + 1'))
  const open: string[] = []
  let rests = 0
  const { differenceCount } = await check({
    entriesMax: 1,
    async rest() {
      rests++
      const { rows } = await sql<{ query: string }>`
        select query from pg_stat_activity
        where datname = current_database() and backend_type = 'client backend'
          and pid <> pg_backend_pid() and xact_start is not null`.execute(db)
      open.push(...rows.map(({ query }) => query))
    },
  })
  expect(differenceCount).toBe(1)
  expect(rests).toBeGreaterThan(5)
  expect(open).toEqual([])
})

test('holds that differ are reported and leave the point where it is: no entry is read again', async () => {
  await check()
  const points = await readPoints(db, [organizationId])
  await bypassing(
    account('held = held + 1'),
    sql`insert into credit_hold values (${organizationId}, 'req_x', 0, now() - interval '1 hour', '{}')`,
  )
  const expected = ['held', 'overdue holds']
  for (let look = 0; look < 2; look++) {
    const { entries, differences } = await check()
    expect(differences.map(({ what }) => what)).toEqual(expected)
    expect(entries).toBe(0)
  }
  expect((await reconcile(db)).differences.map(({ what }) => what)).toEqual(expected)
  expect(await readPoints(db, [organizationId])).toEqual(points)
  await charge(80)
  expect(await check()).toMatchObject({ entries: 1, differenceCount: 2 })
})

test('whole ledgers are checked when all organizations have been compared', async () => {
  const [first, last] = [`org_${'0'.repeat(24)}`, `org_${'z'.repeat(24)}`]
  await openLongAgo(first)
  await addOrganizations(150)
  await openLongAgo(last)
  await bypassing(sql`update credit_account set posted = 1 where organization_id = ${first}`)
  const stopped = check({
    onDifferences() {
      throw new Error('enough')
    },
  })
  await expect(stopped).rejects.toThrow('enough')
  expect([...(await readPoints(db, [last])).keys()]).toEqual([last])
})

test('suspects that are too many to remember are counted, and checked by the next pass', async () => {
  await addOrganizations(3)
  await check()
  await bypassing(sql`update credit_account set posted = 1 where organization_id like 'org_000%'`)
  const passes = [await check({ wholeChecksMax: 2 }), await check({ wholeChecksMax: 2 })]
  expect(passes).toMatchObject([
    { differenceCount: 2, postponed: 1 },
    { differenceCount: 3, postponed: 0 },
  ])
  // All of them are known now: one of those is left to later.
  expect(await check({ wholeChecksMax: 2 })).toMatchObject({ differenceCount: 2, postponed: 1 })
})

/** Both organizations have one new entry, and one of them cannot be read. */
async function addUnreadable() {
  const id = `org_${'0'.repeat(24)}`
  await openLongAgo(id)
  await check()
  for (const each of [id, organizationId]) await chargeCall(db, each, { at: longAgo(80) })
  await sql`alter table usage_day rename to away`.execute(db)
  await sql`create function is_readable(id text) returns boolean language plpgsql as $$ begin
    if id = '${sql.raw(id)}' then raise 'unreadable'; end if; return true; end $$`.execute(db)
  await sql`create view usage_day as
    select * from away where is_readable(organization_id)`.execute(db)
}

test('an organization that cannot be read does not make the ledgers of others be read as a whole', async () => {
  await addUnreadable()
  const failures: unknown[] = []
  const report = await check({ onFailure: (error) => failures.push(error) })
  expect(report).toMatchObject({ entries: 1, unread: 1, differenceCount: 0 })
  expect(failures.map(String)).toEqual([1, 2].map(() => expect.stringContaining('unreadable')))
  expect((await readPoints(db, [organizationId])).get(organizationId)?.at).toEqual(longAgo(80))
})

test('after the error of a group, what differs in one of its organizations is still found', async () => {
  await addUnreadable()
  await bypassing(account('posted = posted + 1'))
  const report = await check({ onFailure: () => undefined })
  expect(report).toMatchObject({ unread: 1, differences: [{ organizationId, what: 'posted' }] })
})

test('a check of the whole ledger that began before does not forget what another one has found', async () => {
  const damage = (id: string) =>
    bypassing(sql`update ledger_entry set meta = meta - 'prices' where id = ${id}`)
  const repair = (id: string) =>
    bypassing(
      sql`update ledger_entry set meta = (select meta from ledger_entry where id = 'req_20') where id = ${id}`,
    )
  await damage('req_10')
  await reconcile(db)
  await repair('req_10')
  let rests = 0
  const slow = await found({
    entriesMax: 1,
    async rest() {
      // One rest for the comparison, one for the payment: req_0 has been read.
      if (++rests !== 4) return
      await damage('req_0')
      expect((await reconcile(db)).differenceCount).toBe(1)
    },
  })
  expect(slow).toEqual([])
  expect(await found()).toEqual([['charge', 'req_0']])
  await repair('req_0')
  expect(await found()).toEqual([])
  expect(await check()).toMatchObject({ entries: 0 })
})

test('a column that a later release adds to the points does not stop this one', async () => {
  await sql`alter table ledger_point add column later text not null default 'x'`.execute(db)
  await check()
  expect(await check()).toMatchObject({ entries: 0 })
  await bypassing(account('posted = posted + 1'))
  for (let look = 0; look < 2; look++) expect(await found()).toEqual([['posted', null]])
})

test.each(['its news', 'its whole ledger'])(
  'an organization that writes faster than %s can be read does not hold up the pass',
  async (what) => {
    if (what === 'its whole ledger') {
      await bypassing(account('posted = posted + 1'))
      await reconcile(db)
      await bypassing(account('posted = posted - 1'))
    }
    let calls = 0
    const busy = await check({
      entriesMax: 2,
      async rest() {
        for (let call = 0; call < 3; call++) {
          await chargeCall(db, organizationId, { id: `req_now_${calls++}` })
        }
      },
    })
    expect(busy).toMatchObject({ differenceCount: 0, postponed: 1 })
    expect(await check()).toMatchObject({ differenceCount: 0, postponed: 0 })
  },
)

test('an organization that writes at less than half the speed of reading is compared', async () => {
  let calls = 0
  const busy = await check({
    entriesMax: 3,
    rest: async () => void (await chargeCall(db, organizationId, { id: `req_now_${calls++}` })),
  })
  expect(busy).toMatchObject({ differenceCount: 0, postponed: 0 })
})
