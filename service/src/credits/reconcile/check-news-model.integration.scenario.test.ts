import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { type RawBuilder, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import type { Db } from '#platform/database.ts'
import { openOrganization } from '#testing/credit-calls.ts'
import { chargeCall } from '#testing/ledger.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { checkNews } from './check-news.ts'
import { reconcile } from './reconcile.ts'
import type { Difference } from './sum-ledger.ts'

// The check of the whole ledger is the model of the hourly one: over random histories with checks in between, both find the same, in sound
// ledgers and in those that were changed after the last point. LEDGER_HISTORIES sets how many, LEDGER_SEED repeats a run.

const histories = sizeOf({ usual: 60, long: 1000, variable: 'LEDGER_HISTORIES' })
const seed = Number(process.env['LEDGER_SEED'] ?? Date.now() % 2 ** 31)

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
beforeAll(async () => {
  database = await createTestDatabase()
  ;({ db } = database)
})
afterAll(() => database[Symbol.asyncDispose]())

const subjects = [
  { projectId: 'proj_1', keyId: 'key_1', model: 'model-1' },
  { projectId: null, keyId: 'key_1', model: 'model-1' },
  { projectId: 'proj_2', keyId: `k"'\\,{}[]`, model: '模型 $1' },
]

/** Past constraints and triggers. */
const bypassing = (change: RawBuilder<unknown>) =>
  db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await change.execute(tx)
  })

type Id = string
const changes: Record<string, (id: Id) => RawBuilder<unknown>> = {
  'a balance': (id) =>
    sql`update credit_account set posted = posted + 1 where organization_id = ${id}`,
  'what was used': (id) =>
    sql`update credit_account set used = used - 1 where organization_id = ${id}`,
  'what is held': (id) =>
    sql`update credit_account set held = held + 1 where organization_id = ${id}`,
  'what was paid': (id) => sql`update organization set paid_micro_usd = 3 where id = ${id}`,
  'the account': (id) => sql`delete from credit_account where organization_id = ${id}`,
  'a hold': (id) => sql`insert into credit_hold values (${id}, 'x', 5, now(), '{}')`,
  'a new amount': (id) =>
    sql`update ledger_entry set amount = amount + 1 where organization_id = ${id} and id = 'req_new'`,
  'new prices': (id) =>
    sql`update ledger_entry set meta = meta - 'prices' where organization_id = ${id} and id = 'req_new'`,
  'new accounts': (id) =>
    sql`update ledger_entry set debit = 'topup' where organization_id = ${id} and id = 'req_new'`,
  'a new entry': (id) =>
    sql`delete from ledger_entry where organization_id = ${id} and id = 'req_new'`,
  'a new write-off': (id) =>
    sql`delete from ledger_entry where organization_id = ${id} and id = 'req_new:writeoff'`,
  'a write-off of nothing': (id) =>
    sql`insert into ledger_entry (organization_id, id, debit, credit, amount, kind, meta)
      values (${id}, 'y:writeoff', 'writeoff', 'revenue', 4, 'writeoff', '{}')`,
  'the sums of the last day': (id) =>
    sql`update usage_day set requests = requests + 1 where (organization_id, day) =
      (select organization_id, max(day) from usage_day where organization_id = ${id} group by 1)`,
  'the rows of the last day': (id) =>
    sql`delete from usage_day where (organization_id, day) =
      (select organization_id, max(day) from usage_day where organization_id = ${id} group by 1)`,
  nothing: () => sql`select`,
}

const call = fc.record({
  afterMinutes: fc.oneof(fc.nat(3), fc.nat(2000)),
  subject: fc.constantFrom(...subjects),
  writtenOff: fc.constantFrom(0n, 0n, 1n, 5n),
  kind: fc.constantFrom('usage' as const, 'usage' as const, 'late_usage' as const),
})
const history = fc.record({
  rounds: fc.array(fc.array(call, { maxLength: 6 }), { minLength: 3, maxLength: 3 }),
  last: fc.array(call, { minLength: 1, maxLength: 4 }),
  change: fc.constantFrom(...Object.keys(changes)),
})

type Call = typeof call extends fc.Arbitrary<infer One> ? One : never

/** The clock of each organization only goes on; all of it is long ago, so that it is counted as proven. */
function createWriter(organizationId: Id) {
  let atMs = Date.parse('2026-01-01T22:00:00Z')
  let number = 0
  return async (calls: readonly Call[], isNew = false) => {
    for (const [index, { afterMinutes, subject, writtenOff, kind }] of calls.entries()) {
      atMs += afterMinutes * 60_000
      const isMarked = isNew && index === calls.length - 1
      const id = isMarked ? 'req_new' : `req_${number++}`
      const options = { kind: isMarked ? ('usage' as const) : kind, writtenOff }
      await chargeCall(db, organizationId, { id, at: new Date(atMs), ...subject, ...options })
    }
  }
}

const news = (entriesMax: number) =>
  checkNews(db, {
    entriesMax,
    differencesMax: 100_000,
    onFailure(error) {
      throw error
    },
  })

const inOrder = (differences: readonly Difference[]) =>
  differences.map((each) => JSON.stringify(each)).toSorted()

test(
  `${histories} random histories (seed ${seed})`,
  async () => {
    const all = fc.sample(history, { seed, numRuns: histories }).map((each, index) => {
      const id = `org_${String(index).padStart(24, '0')}`
      return { ...each, id, write: createWriter(id) }
    })
    for (const { id } of all) {
      await openOrganization(db, id, 1_000_000_000n)
      await bypassing(sql`update ledger_entry set at = '2026-01-01' where organization_id = ${id}`)
    }
    for (const round of [0, 1, 2]) {
      for (const { rounds, write } of all) await write(rounds[round] ?? [])
      const checked = await news([1, 150, 1000][round] ?? 1)
      expect(checked).toMatchObject({ organizations: histories, differences: [] })
      expect((await news(1)).entries).toBe(0)
    }
    for (const { id, last, change, write } of all) {
      await write(last, true)
      const apply = changes[change]
      if (apply) await bypassing(apply(id))
    }
    const incremental = await news(200)
    const whole = await reconcile(db, { differencesMax: 100_000 })
    expect(inOrder(incremental.differences)).toEqual(inOrder(whole.differences))
    expect(whole.differenceCount).toBeGreaterThan(histories / 2)
    const again = await news(200)
    expect(inOrder(again.differences)).toEqual(inOrder(whole.differences))
  },
  60_000 + histories * 1000,
)
