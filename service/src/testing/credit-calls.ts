import { sql } from 'kysely'

import { buildCallEvent } from '#audit/event.ts'
import { lockAccount, setPosted } from '#credits/holds/account-store.ts'
import { findEntry, insertEntry } from '#credits/ledger-store.ts'
import type { Hold, Settlement } from '#credits/settlement.ts'
import { buildHoldMeta, buildUsageMeta } from '#credits/usage-meta.ts'
import type { DB } from '#platform/database-types.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import type { Day, Entry } from './credit-model.ts'

// Calls and organizations for tests of the hold queue, and queries of what it has stored.

const price = { input: 1_000_000n, output: 1_000_000n, cachedInput: 0n, cacheWrite: 0n }
const counts = { cachedInputTokens: 0, cacheWriteTokens: 0, origin: 'upstream' as const }

/** The project, key and model that a call's usage is counted under. */
export type Subject = { projectId: string | null; keyId: string; model: string }
const someSubject: Subject = { projectId: 'proj_1', keyId: 'key_1', model: 'model-1' }

export type SomeCall = { organizationId: string; id: string; amount: bigint; subject?: Subject }
type Tokens = { inputTokens: number; outputTokens: number }

export function holdOf({ subject = someSubject, ...call }: SomeCall): Hold {
  return { ...call, expiresInMs: 60_000, meta: buildHoldMeta({ ...subject, price }) }
}

export function settlementOf(
  { subject = someSubject, ...call }: SomeCall,
  tokens: Tokens = { inputTokens: 10, outputTokens: 5 },
): Settlement {
  const meta = buildUsageMeta(buildHoldMeta({ ...subject, price }), { ...counts, ...tokens })
  const report = {
    organizationId: call.organizationId,
    requestId: call.id,
    projectId: subject.projectId,
    actor: subject.keyId,
    actorType: 'project_key' as const,
    model: subject.model,
    target: 'messages',
    outcome: 'completed' as const,
    usage: meta,
    policies: null,
  }
  return { ...call, meta, event: buildCallEvent(report, new Date()) }
}

/** Inserts an organization with its account, and grants it credits. */
export async function openOrganization(db: Db, id: string, posted = 0n) {
  await sql`insert into organization (id, name, created_at) values (${id}, 'Some', now())`.execute(
    db,
  )
  if (posted > 0n) await postOnce(db, id, { id: 'first', kind: 'grant', amount: posted })
}

/** Grants credits, or refunds as many as are available. An id that is in the ledger changes nothing. */
export const postOnce = (db: Db, organizationId: string, entry: Entry & { id: string }) =>
  transact(db, async (tx) => {
    const { posted, held } = await lockAccount(tx, organizationId)
    if (await findEntry(tx, organizationId, entry.id)) return
    const isGrant = entry.kind === 'grant'
    const available = posted - held
    const amount = isGrant || entry.amount < available ? entry.amount : available
    const sides = isGrant
      ? ({ debit: 'promo', credit: 'wallet', kind: 'grant' } as const)
      : ({ debit: 'wallet', credit: 'refund', kind: 'refund' } as const)
    await insertEntry(tx, organizationId, { ...sides, id: entry.id, amount, meta: {} })
    await setPosted(tx, organizationId, isGrant ? posted + amount : posted - amount)
  })

/** Expires the hold of a call, as if the call's process had died long ago. */
export async function letExpire(db: Db, organizationId: string, id: string) {
  await sql`
    update credit_hold set expires_at = now() - interval '1 hour'
    where organization_id = ${organizationId} and id = ${id}`.execute(db)
}

/** Everything that the database holds about an organization's credits. */
export async function readCredits(db: Db, organizationId: string) {
  const of = (table: keyof DB) =>
    sql<Record<string, string>>`
      select * from ${sql.table(table)} where organization_id = ${organizationId}`.execute(db)
  const [account, holds, entries, days, events] = await Promise.all([
    ...([of('credit_account'), of('credit_hold'), of('ledger_entry')] as const),
    // Summed over all days, because a test that runs at midnight has two.
    sql<Record<string, string>>`
      select project_id, key_id, model, sum(requests) as requests, sum(input_tokens) as input_tokens,
        sum(output_tokens) as output_tokens, sum(credits) as credits
      from usage_day where organization_id = ${organizationId} group by 1, 2, 3`.execute(db),
    sql<{ text: string }>`
      select concat_ws(' ', header->>'request_id', header->>'outcome') as text from event
      where organization_id = ${organizationId}`.execute(db),
  ])
  const [{ posted, used, held }] = account.rows as [Record<string, string>]
  return {
    posted: BigInt(posted!),
    used: BigInt(used!),
    held: BigInt(held!),
    holds: new Map(holds.rows.map((row) => [row['id']!, BigInt(row['amount']!)])),
    entries: new Map<string, Entry>(
      entries.rows.map((row) => [
        row['id']!,
        { kind: row['kind']!, amount: BigInt(row['amount']!) },
      ]),
    ),
    days: new Map<string, Day>(days.rows.map((row) => [subjectText(row), dayOf(row)])),
    events: events.rows.map(({ text }) => text),
  }
}

const subjectText = (row: Record<string, string>) =>
  [row['project_id'], row['key_id'], row['model']].join(' ')

const dayOf = (row: Record<string, string>): Day => ({
  requests: Number(row['requests']),
  inputTokens: Number(row['input_tokens']),
  outputTokens: Number(row['output_tokens']),
  credits: BigInt(row['credits']!),
})

/** Organizations whose account, holds or day sums differ from their ledger; there must be none. */
export async function findImbalances(db: Db): Promise<string[]> {
  const { rows } = await sql<{ organization_id: string }>`
    with summed as (
      select organization_id,
        sum(case when credit = 'wallet' then amount when debit = 'wallet' then -amount else 0 end)
          as posted,
        sum(case when kind in ('usage', 'late_usage') then amount else 0 end) as used
      from ledger_entry group by 1
    ), holds as (select organization_id, sum(amount) as held from credit_hold group by 1),
    by_day as (
      select organization_id, (at at time zone 'UTC')::date as day, coalesce(project_id, '') as project_id,
        meta->>'key_id' as key_id, meta->>'model' as model, count(*) as requests,
        sum((meta->>'input_tokens')::bigint) as input_tokens,
        sum((meta->>'output_tokens')::bigint) as output_tokens, sum(amount) as credits
      from ledger_entry where kind in ('usage', 'late_usage') group by 1, 2, 3, 4, 5
    ), days as (
      select organization_id, day, project_id, key_id, model, requests - unbilled_requests,
        input_tokens - unbilled_input_tokens, output_tokens - unbilled_output_tokens,
        credits - unbilled_credits
      from usage_day where requests > unbilled_requests
    )
    select organization_id from credit_account account
    left join summed using (organization_id) left join holds using (organization_id)
    where (account.posted, account.used, account.held) is distinct from
      (coalesce(summed.posted, 0), coalesce(summed.used, 0), coalesce(holds.held, 0))
    union all (select organization_id from (table by_day except table days) missing)
    union all (select organization_id from (table days except table by_day) surplus)`.execute(db)
  return rows.map(({ organization_id }) => organization_id)
}
