import { sql } from 'kysely'

import {
  creditsFromMeta,
  buildHoldMeta,
  type UsageMeta,
  buildUsageMeta,
} from '#credits/usage-meta.ts'
import type { Db } from '#platform/database.ts'
import { createId } from '#platform/id.ts'

const price = {
  input: 3_000_000n,
  output: 15_000_000n,
  cachedInput: 300_000n,
  cacheWrite: 3_750_000n,
}

type Call = {
  id?: string
  projectId?: string | null
  keyId?: string
  model?: string
  inputTokens?: number
  outputTokens?: number
  at?: Date
  kind?: 'usage' | 'late_usage'
  /** The part of its cost that is written off. */
  writtenOff?: bigint
}

export function buildMeta(call: Call = {}): UsageMeta {
  const { projectId = 'proj_1', keyId = 'key_1', model = 'model-1' } = call
  const { inputTokens = 1000, outputTokens = 100 } = call
  const used = { inputTokens, outputTokens, cachedInputTokens: 100, cacheWriteTokens: 10 }
  return buildUsageMeta(buildHoldMeta({ projectId, keyId, model, price }), {
    ...used,
    origin: 'upstream',
  })
}

/** Charges for a call that has ended, in one transaction. */
export async function chargeCall(db: Db, organizationId: string, call: Call = {}) {
  const { kind = 'usage', writtenOff = 0n, at = new Date() } = call
  const request = call.id ?? createId('req', at)
  const id = kind === 'usage' ? request : `${request}:late`
  const meta = buildMeta(call)
  const amount = creditsFromMeta(meta) - writtenOff
  const entries = [
    { id, debit: 'wallet', amount, kind },
    { id: `${id}:writeoff`, debit: 'writeoff', amount: writtenOff, kind: 'writeoff' },
  ].filter((entry) => entry.kind !== 'writeoff' || entry.amount > 0n)
  await db.transaction().execute(async (tx) => {
    await sql`update credit_account set posted = posted - ${amount}, used = used + ${amount}
      where organization_id = ${organizationId}`.execute(tx)
    for (const entry of entries) {
      await sql`insert into ledger_entry
        (organization_id, id, debit, credit, amount, kind, project_id, meta, at)
        values (${organizationId}, ${entry.id}, ${entry.debit}, 'revenue', ${entry.amount}, ${entry.kind},
          ${meta.project_id}, ${JSON.stringify(meta)}, ${call.at ?? sql`clock_timestamp()`})`.execute(
        tx,
      )
    }
    await sql`insert into usage_day as sums
      values (${organizationId}, (${call.at ?? sql`clock_timestamp()`}::timestamptz at time zone 'UTC')::date,
        ${meta.project_id ?? ''}, ${meta.key_id}, ${meta.model}, 1, ${meta.input_tokens},
        ${meta.output_tokens}, ${amount})
      on conflict (organization_id, day, project_id, key_id, model) do update set
        requests = sums.requests + 1, input_tokens = sums.input_tokens + excluded.input_tokens,
        output_tokens = sums.output_tokens + excluded.output_tokens,
        credits = sums.credits + excluded.credits`.execute(tx)
  })
  return { id, amount, meta }
}
