import { bucketsMax, readAuditHistogram } from '@gatehouse/contract/exports/audit-event'
import type { FastifyInstance } from 'fastify'

import { bind } from '#http/bind.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Db } from '#platform/database.ts'

import { countEvents, type Span } from './event-count-store.ts'
import { readFilters, readRange } from './read-filters.ts'

const lengthsMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const
type Length = keyof typeof lengthsMs

export function serveReadAuditHistogram(app: FastifyInstance, { db }: { db: Db }) {
  bind(app, readAuditHistogram, async ({ query }, { principal: { organizationId } }) => {
    const { by } = query
    const buckets = divide(readRange(query), by)
    const counts = await countEvents(db, organizationId, readFilters(query), buckets)
    const data = buckets.map(({ from }, index) => ({
      start: new Date(startOf(from.getTime(), by)).toISOString(),
      count: counts[index] ?? 0,
    }))
    return { object: 'organization.audit_histogram' as const, by, data }
  })
}

const startOf = (ms: number, by: Length) => Math.floor(ms / lengthsMs[by]) * lengthsMs[by]

/** The parts of a range that lie in each minute, hour or day. */
function divide({ from, to }: Span, by: Length): Span[] {
  const [firstMs, endMs] = [within(from), within(to)]
  const count = firstMs < endMs ? Math.ceil((endMs - startOf(firstMs, by)) / lengthsMs[by]) : 0
  if (count > bucketsMax) {
    const message = `'query.from' is more than ${bucketsMax} ${by}s before to; ask for less time${by === 'day' ? '' : ', or for longer parts with by'}.`
    throw new ApiError('invalid_parameter', message, { param: 'query.from' })
  }
  return Array.from({ length: count }, (_, index) => {
    const startMs = startOf(firstMs, by) + index * lengthsMs[by]
    const endOfPartMs = startMs + lengthsMs[by]
    return {
      from: new Date(Math.max(startMs, firstMs)),
      to: new Date(Math.min(endOfPartMs, endMs)),
    }
  })
}

/** Events are from 1970 on; times are written with years of four digits. */
const within = (moment: Date) => Math.min(Math.max(moment.getTime(), 0), 253_402_300_799_999)
