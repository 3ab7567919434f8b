import { type RawBuilder, sql } from 'kysely'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import { createKeyHasher } from '#access/secret.ts'
import { createAnnouncer } from '#audit/announce.ts'
import { buildCallEvent, operator } from '#audit/event.ts'
import { createHoldQueue } from '#credits/holds/hold-queue.ts'
import { sweepHolds } from '#credits/holds/sweep-store.ts'
import { grantCredits, recordPayment } from '#credits/payments/payments.ts'
import { refundPayment } from '#credits/payments/refunds.ts'
import { creditsFromMeta } from '#credits/usage-meta.ts'
import { systemClock } from '#platform/clock.ts'
import type { Db, Tx } from '#platform/database.ts'
import { chargeCall, buildMeta } from '#testing/ledger.ts'
import { createTestDatabase } from '#testing/test-database.ts'

import { describeReport } from './describe-report.ts'
import { reconcile } from './reconcile.ts'

// One ledger with an entry of every kind, made as the service makes them. Each test corrupts a part of it and
// restores it.

let database: Awaited<ReturnType<typeof createTestDatabase>>
let db: Db
let organizationId: string
let queue: ReturnType<typeof createHoldQueue>

beforeAll(async () => {
  database = await createTestDatabase()
  ;({ db } = database)
  queue = createHoldQueue({ db })
  const now = systemClock
  const announce = createAnnouncer(now, () => undefined)
  const hashKey = createKeyHasher([{ version: 1, bytes: Buffer.alloc(32, 1) }])
  const deps = { db, now, announce, hashKey, by: operator }
  ;({ organizationId } = await createOrganization('Example Ltd', deps))
  await createOrganization('Nothing happens here', deps)
  await recordPayment(organizationId, { id: 'pay_1', amount: 20_000n }, deps)
  await grantCredits(organizationId, { id: 'gift_1', amount: 10_000n }, deps)
  await chargeCall(db, organizationId, { at: new Date('2026-01-01T23:59:59.999Z') })
  await chargeCall(db, organizationId, { at: new Date('2026-01-02T00:00:00Z'), projectId: null })
  await hold('req_charged', 5000n)
  await settle('req_charged')
  await hold('req_beyond', 100n)
  await settle('req_beyond')
  await hold('req_swept', 1000n, 0)
  await sweepHolds(db)
  await hold('req_failed', 1000n)
  await settle('req_failed', { inputTokens: 0, outputTokens: 0 })
  await refundPayment(organizationId, { id: 'back_1', amount: 20_000n, paymentId: 'pay_1' }, deps)
  await settle('req_swept') // late, and the balance is gone
  await grantCredits(organizationId, { id: 'gift_2', amount: 10_000n }, deps)
  await hold('req_open', 700n)
})
afterAll(async () => database[Symbol.asyncDispose]())

const hold = (id: string, amount: bigint, expiresInMs = 60_000) =>
  queue.reserve({ organizationId, id, amount, expiresInMs, meta: buildMeta() })

async function settle(id: string, tokens = { inputTokens: 1000, outputTokens: 100 }) {
  const isFree = tokens.inputTokens === 0
  const plain = buildMeta(tokens)
  const meta = isFree ? { ...plain, cached_input_tokens: 0, cache_write_tokens: 0 } : plain
  const report = {
    organizationId,
    requestId: id,
    projectId: meta.project_id,
    actor: meta.key_id,
    actorType: 'project_key' as const,
    model: meta.model,
    target: 'messages',
    outcome: 'completed' as const,
    usage: {},
    policies: null,
  }
  const event = buildCallEvent(report, new Date())
  return queue.settle({ organizationId, id, amount: creditsFromMeta(meta), meta, event })
}

const tables = ['organization', 'credit_account', 'credit_hold', 'ledger_entry', 'usage_day']

/** Changes rows past all constraints and triggers, reconciles, and restores the rows. */
async function reconcileCorrupted(changes: readonly RawBuilder<unknown>[], differencesMax = 100) {
  await withoutTriggers(async (tx) => {
    for (const table of tables) {
      await sql`create table ${sql.id(`${table}_kept`)} as table ${sql.id(table)}`.execute(tx)
    }
    for (const change of changes) await change.execute(tx)
  })
  const report = await reconcile(db, { pageRows: 3, differencesMax })
  await withoutTriggers(async (tx) => {
    for (const table of tables) {
      await sql`delete from ${sql.id(table)}`.execute(tx)
      await sql`insert into ${sql.id(table)} overriding system value
        table ${sql.id(`${table}_kept`)}`.execute(tx)
      await sql`drop table ${sql.id(`${table}_kept`)}`.execute(tx)
    }
  })
  return report
}

const withoutTriggers = (work: (tx: Tx) => Promise<void>) =>
  db.transaction().execute(async (tx) => {
    await sql`set local session_replication_role = replica`.execute(tx)
    await work(tx)
  })

async function findingsAfter(...changes: RawBuilder<unknown>[]) {
  const { differences } = await reconcileCorrupted(changes)
  return differences.map(({ what, of, expected, found }) => [what, of, expected, found])
}

test('nothing differs in a ledger that the service has written', async () => {
  for (const pageRows of [1, 3, 1000]) {
    const report = await reconcile(db, { pageRows })
    expect(report).toEqual({
      unread: 0,
      organizations: 2,
      entries: 14,
      differenceCount: 0,
      differences: [],
    })
  }
  const kinds = await db.selectFrom('ledger_entry').select('kind').distinct().execute()
  expect(kinds).toHaveLength(7)
  expect(await reconcile(db, { organizationId })).toMatchObject({ organizations: 1, entries: 14 })
})

const wallet = (set: string) => sql`update credit_account set ${sql.raw(set)} where posted <> 0`
const entry = (set: string, id: string) =>
  sql`update ledger_entry set ${sql.raw(set)} where id = ${id}`
const day = '2026-01-01 proj_1 key_1 model-1'

test('a balance that differs from its entries is found', async () => {
  const { posted, used } = await db
    .selectFrom('credit_account')
    .select(['posted', 'used'])
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
  expect(await findingsAfter(wallet('posted = posted + 1'))).toEqual([
    ['posted', null, posted, String(BigInt(posted) + 1n)],
  ])
  expect(await findingsAfter(wallet('used = used - 1'))).toEqual([
    ['used', null, used, String(BigInt(used) - 1n)],
  ])
  expect(await findingsAfter(sql`delete from credit_account where posted = 0`)).toEqual([
    ['account', null, 'an account', 'none'],
  ])
  const lost = await findingsAfter(sql`delete from ledger_entry where id = 'gift_1'`)
  expect(lost).toEqual([['posted', null, String(BigInt(posted) - 10_000n), posted]])
})

test('what is held beside what the open holds add up to', async () => {
  expect(await findingsAfter(wallet('held = held + 1'))).toEqual([['held', null, '700', '701']])
  expect(await findingsAfter(sql`delete from credit_hold`)).toEqual([['held', null, '0', '700']])
})

test('a hold that should have been swept more than 5 minutes ago', async () => {
  const expire = (ago: string) =>
    findingsAfter(sql`update credit_hold set expires_at = now() - ${ago}::interval`)
  expect(await expire('4 minutes 59 seconds')).toEqual([])
  expect(await expire('5 minutes 1 second')).toEqual([['overdue holds', null, '0', '1']])
})

test('a charge that is not what its tokens cost', async () => {
  const found = await findingsAfter(entry('amount = amount + 1', 'req_charged'))
  expect(found.map(([what, of]) => [what, of])).toEqual([
    ['charge', 'req_charged'],
    ['usage of a day', expect.any(String)],
    ['posted', null],
    ['used', null],
  ])
  const [, , cost] = found[0] ?? []
  expect(found[0]?.[3]).toBe(String(BigInt(cost ?? 0) + 1n))
})

test('a charge whose write-off is gone, changed, or belongs to nothing', async () => {
  const [charge, writeoff] = ['req_swept:late', 'req_swept:late:writeoff']
  const gone = await findingsAfter(sql`delete from ledger_entry where id = ${writeoff}`)
  expect(gone.map(([what, of]) => [what, of])).toEqual([['charge', charge]])
  const less = await findingsAfter(entry('amount = amount - 1', writeoff))
  expect(less.map(([what, of]) => [what, of])).toEqual([['charge', charge]])
  const orphan = await findingsAfter(entry("id = 'req_other:writeoff'", writeoff))
  expect(orphan.map(([what, of]) => [what, of])).toEqual([
    ['charge', charge],
    ['write-offs', null],
  ])
})

test('a charge with other prices or tokens beside it, or none', async () => {
  const other = await findingsAfter(
    entry(`meta = jsonb_set(meta, '{prices,input}', '4000000')`, 'req_charged'),
  )
  expect(other.map(([what, of]) => [what, of])).toEqual([['charge', 'req_charged']])
  const none = await findingsAfter(entry(`meta = meta - 'prices'`, 'req_charged'))
  expect(none.map(([, , expected]) => expected)).toEqual(['something that can be computed'])
  const tokens = await findingsAfter(entry(`meta = meta - 'input_tokens'`, 'req_charged'))
  expect(tokens.map(([what]) => what)).toEqual(['charge', 'usage of a day'])
})

test('a call without a known end that costs something', async () => {
  const found = await findingsAfter(entry('amount = 5', 'req_swept'))
  expect(found.map(([what, of]) => [what, of])).toEqual([
    ['charge', 'req_swept'],
    ['posted', null],
  ])
})

test('an entry between the wrong accounts', async () => {
  expect(await findingsAfter(entry(`debit = 'topup'`, 'gift_1'))).toEqual([
    ['accounts of an entry', 'gift_1', 'promo to wallet', 'topup to wallet'],
  ])
})

test('what was paid beside payments and refunds, also those whose credits were spent', async () => {
  const found = await findingsAfter(
    sql`update organization set paid_micro_usd = 7 where id = ${organizationId}`,
  )
  expect(found).toEqual([['paid', null, '0', '7']])
})

test('a day whose sums are not those of its entries, or that has none', async () => {
  const [, , , sum] = (
    await findingsAfter(sql`update usage_day set credits = credits + 1
    where day = '2026-01-01'`)
  ).flat()
  expect(sum).toMatch(/^1 requests, 1000 \+ 100 tokens, \d+ credits$/)
  for (const column of ['requests', 'input_tokens', 'output_tokens']) {
    const found = await findingsAfter(sql`update usage_day set ${sql.ref(column)} = 0
      where day = '2026-01-01'`)
    expect(found.map(([what, of]) => [what, of])).toEqual([['usage of a day', day]])
  }
  const gone = await findingsAfter(sql`delete from usage_day where day = '2026-01-02'`)
  expect(gone.map(([, of, , found]) => [of, found])).toEqual([
    ['2026-01-02 - key_1 model-1', 'nothing'],
  ])
  const move = (to: string) =>
    findingsAfter(sql`update usage_day set day = ${to}::date where day = '2026-01-01'`)
  for (const to of ['2025-12-31', '2200-01-01']) {
    const found = await move(to)
    expect(found).toHaveLength(2)
    expect(found.filter(([, , expected]) => expected === 'nothing')).toHaveLength(1)
    expect(found.filter(([, , , kept]) => kept === 'nothing')).toHaveLength(1)
  }
})

test('differences are all counted, but only some are listed', async () => {
  const report = await reconcileCorrupted([sql`update usage_day set requests = 0`], 1)
  expect([report.differenceCount, report.differences.length]).toEqual([3, 1])
  const described = describeReport(report)
  expect(described.exitCode).toBe(1)
  expect(described.text.split('\n')).toEqual([
    '2 organizations, 14 ledger entries: 3 differences.',
    expect.stringContaining(`${organizationId}: usage of a day (${day}): expected 1 requests`),
    '... and 2 more.',
    '',
  ])
  const { text, exitCode } = describeReport(await reconcile(db))
  expect([text, exitCode]).toEqual(['2 organizations, 14 ledger entries: everything agrees.\n', 0])
})

test('calls during the check make no difference', async () => {
  let isOver = false
  let calls = 0
  const callOn = async () => {
    while (!isOver) {
      const id = `req_meanwhile_${calls++}`
      await hold(id, 1n)
      await settle(id, { inputTokens: 0, outputTokens: 0 })
    }
  }
  const calling = [callOn(), callOn()]
  for (let look = 0; look < 30; look++) {
    expect((await reconcile(db, { pageRows: 7 })).differences).toEqual([])
  }
  isOver = true
  await Promise.all(calling)
  expect(calls).toBeGreaterThan(30)
})

test('the check ends when its signal aborts', async () => {
  await expect(reconcile(db, { signal: AbortSignal.abort() })).rejects.toThrow(/abort/)
})
