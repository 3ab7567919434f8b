import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { insertEvents } from '#audit/event-store.ts'
import type { Hold, Settlement } from '#credits/settlement.ts'
import type { Db } from '#platform/database.ts'
import { findImbalances, holdOf, openOrganization, settlementOf } from '#testing/credit-calls.ts'
import { connectPatiently, createTestDatabase } from '#testing/test-database.ts'

import { createHoldQueue, type HoldQueue } from './hold-queue.ts'

// How many calls of one organization can be held and settled in a second: together, and each hold and each
// settlement in a transaction of its own. Both are measured in turns on the same server; the machine is
// shared, so the best window of each counts (noise only ever takes away).

const inFlight = 64
const windowMs = 1500
const windowsMin = 3
const windowsMax = 8
const ratioMin = 10

/** What the store does, in the plainest way. */
const createPlainStore = (db: Db): HoldQueue => ({
  reserve: ({ organizationId, id, amount, meta }: Hold) =>
    db.transaction().execute(async (tx) => {
      const { rows } = await sql<{ room: string; held: string }>`
        select posted - held + overdraft as room, held from credit_account
        where organization_id = ${organizationId} for update`.execute(tx)
      const available = BigInt(rows[0]!.room)
      if (amount > available) return { isHeld: false, available, held: BigInt(rows[0]!.held) }
      await sql`
        insert into credit_hold (organization_id, id, amount, expires_at, meta)
        values (${organizationId}, ${id}, ${amount}, now() + interval '1 minute', ${meta})`.execute(
        tx,
      )
      await sql`
        update credit_account set held = held + ${amount}
        where organization_id = ${organizationId}`.execute(tx)
      return { isHeld: true }
    }),
  settle: ({ organizationId, id, amount, meta, event }: Settlement) =>
    db.transaction().execute(async (tx) => {
      await sql`
        select from credit_account where organization_id = ${organizationId} for update`.execute(tx)
      const { rows: holds } = await sql<{ amount: string }>`
        delete from credit_hold where organization_id = ${organizationId} and id = ${id}
        returning amount`.execute(tx)
      await sql`
        insert into ledger_entry (organization_id, id, debit, credit, amount, kind, project_id, meta)
        values (${organizationId}, ${id}, 'wallet', 'revenue', ${amount}, 'usage',
          ${meta.project_id}, ${meta})`.execute(tx)
      await sql`
        insert into usage_day as so_far values (${organizationId}, (now() at time zone 'UTC')::date,
          ${meta.project_id}, ${meta.key_id}, ${meta.model}, 1, ${meta.input_tokens},
          ${meta.output_tokens}, ${amount})
        on conflict (organization_id, day, project_id, key_id, model) do update set
          requests = so_far.requests + 1,
          input_tokens = so_far.input_tokens + excluded.input_tokens,
          output_tokens = so_far.output_tokens + excluded.output_tokens,
          credits = so_far.credits + excluded.credits`.execute(tx)
      await insertEvents(tx, [event])
      const { rows } = await sql<{ posted: string }>`
        update credit_account set held = held - ${holds[0]!.amount}::bigint,
          posted = posted - ${amount}::bigint, used = used + ${amount}::bigint
        where organization_id = ${organizationId}
        returning posted`.execute(tx)
      return { charged: amount, posted: BigInt(rows[0]!.posted) }
    }),
})

let made = 0
/** Calls in a second. */
async function measure(store: HoldQueue): Promise<number> {
  const startedAt = performance.now()
  let done = 0
  const worker = async () => {
    while (performance.now() - startedAt < windowMs) {
      const call = { organizationId: 'org_1', id: `req_${made++}`, amount: 7n }
      const { isHeld } = await store.reserve(holdOf(call))
      const { charged } = await store.settle(settlementOf(call))
      if (!isHeld || charged !== call.amount) throw new Error('a call was not charged')
      done++
    }
  }
  await Promise.all(Array.from({ length: inFlight }, worker))
  return Math.round((done * 1000) / (performance.now() - startedAt))
}

test(`one organization, ${inFlight} calls in flight: ${ratioMin} times as many as with a transaction for each step`, async () => {
  await using database = await createTestDatabase()
  const db = connectPatiently({ url: database.url, poolSize: 16, statementTimeoutMs: 20_000 })
  await openOrganization(db, 'org_1', 1_000_000_000n)
  const together = createHoldQueue({ db, reserveMaxMs: 20_000 })
  const plain = createPlainStore(db)
  await measure(together)
  const windows: { together: number; plain: number }[] = []
  const best = (kind: 'together' | 'plain') => Math.max(...windows.map((each) => each[kind]))
  const isEnough = () => best('together') >= ratioMin * best('plain')
  while (windows.length < windowsMin || (windows.length < windowsMax && !isEnough())) {
    windows.push({ together: await measure(together), plain: await measure(plain) })
  }
  console.table(windows)
  const ratio = best('together') / best('plain')
  console.log(
    `calls in a second: ${best('together')} and ${best('plain')}, ${ratio.toFixed(1)} times`,
  )
  expect(await findImbalances(db)).toEqual([])
  await db.destroy()
  expect(ratio).toBeGreaterThanOrEqual(ratioMin)
}, 120_000)
