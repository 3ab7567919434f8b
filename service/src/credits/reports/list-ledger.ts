import { type LedgerEntry, listLedgerEntries } from '@gatehouse/contract/credits'
import { pageOf } from '@gatehouse/contract/list'
import type { FastifyInstance } from 'fastify'

import { findLedgerPosition, type LedgerRow, listLedger } from '#credits/ledger-store.ts'
import { toSafeNumber } from '#credits/money.ts'
import { formatPrice, formatPriceOfCall } from '#credits/price.ts'
import type { UsageMeta } from '#credits/usage-meta.ts'
import { bind } from '#http/bind.ts'
import { invalidCursor } from '#http/read-page.ts'
import { toSeconds } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

export function serveListLedger(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, listLedgerEntries, async ({ query }, { principal: { organizationId } }) => {
    const { after, limit, order, kind } = query
    const position =
      after === undefined ? undefined : await findLedgerPosition(db, organizationId, after)
    if (after !== undefined && !position) throw invalidCursor()
    const rows = await listLedger(db, organizationId, {
      after: position,
      limit,
      order,
      kind,
      projectId: query.project_id,
      from: toDate(query.from),
      to: toDate(query.to),
    })
    return pageOf(rows.map(presentEntry), limit)
  })
}

const toDate = (text: string | undefined) => (text === undefined ? undefined : new Date(text))

/** Payments, grants and refunds have no usage in their `meta`. */
function presentEntry({ id, kind, debit, credit, ...row }: LedgerRow): LedgerEntry {
  const meta = row.meta as Partial<UsageMeta>
  return {
    id,
    object: 'organization.credits.ledger_entry',
    kind,
    amount: toSafeNumber(row.amount),
    debit,
    credit,
    request_id: belongsToCall({ kind, debit, credit }) ? requestIdOf(id) : null,
    project_id: row.project_id,
    key_id: meta.key_id ?? null,
    model: meta.model ?? null,
    input_tokens: meta.input_tokens ?? null,
    cached_input_tokens: meta.cached_input_tokens ?? null,
    cache_write_tokens: meta.cache_write_tokens ?? null,
    cache_write_1h_tokens: isUsage(meta) ? (meta.cache_write_1h_tokens ?? 0) : null,
    output_tokens: meta.output_tokens ?? null,
    web_searches: isUsage(meta) ? (meta.web_searches ?? 0) : null,
    usage_source: meta.usage_source ?? null,
    price_version: meta.price_version ?? null,
    prices: meta.prices ? presentPrices(meta.prices) : null,
    created_at: toSeconds(row.at),
  }
}

/** A write-off belongs to a call or, if one of its sides is `refund`, to a refund. */
const belongsToCall = ({ kind, debit, credit }: Pick<LedgerEntry, 'kind' | 'debit' | 'credit'>) =>
  !['payment', 'grant', 'refund'].includes(kind) && debit !== 'refund' && credit !== 'refund'

/** `req_1:late` and `req_1:writeoff` belong to `req_1`. */
const requestIdOf = (id: string) => id.split(':', 1)[0] ?? id

const isUsage = (meta: Partial<UsageMeta>) => meta.output_tokens !== undefined

const presentPrices = ({
  input,
  cached_input,
  cache_write,
  cache_write_1h,
  output,
  web_search,
}: UsageMeta['prices']) => ({
  input: formatPrice(input),
  cached_input: formatPrice(cached_input),
  cache_write: formatPrice(cache_write),
  cache_write_1h: cache_write_1h === undefined ? null : formatPrice(cache_write_1h),
  output: formatPrice(output),
  web_search: web_search === undefined ? null : formatPriceOfCall(web_search),
})
