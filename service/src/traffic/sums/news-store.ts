import type { LocalSettings, NamedTx } from '#platform/database.ts'
import { binaryArray, plainArray } from '#platform/statements/array-values.ts'

import type { CallEvent } from './call-fact.ts'

// Every statement has a name: workers run them every few seconds, over a month of partitions.

/** A plan for any values is as good as one for these, and is made once. A head that another task has locked is waited for briefly. */
export const summingSettings: LocalSettings = {
  jit: 'off',
  lock_timeout: '500ms',
  plan_cache_mode: 'force_generic_plan',
}

/** Up to where an organization's events are in the sums. */
export type SummedSize = { organizationId: string; before: number; after: number }

/** The first of the two numbers of an advisory lock that says that events of an organization are being summed. */
const lockClass = 4747

const newsStatement = {
  name: 'traffic_lock_news',
  text: `
    select organization_id from audit_head
    where org_seq > summed_size and organization_id > $1::text collate "C"
      and pg_try_advisory_xact_lock(${lockClass}, hashtext(organization_id))
    order by organization_id limit $2::integer`,
}

/** Organizations after this one with events that are in no sum, except for those that another worker is summing. */
export async function lockOrganizationsWithNews(
  tx: NamedTx,
  after: string,
  limit: number,
): Promise<string[]> {
  const rows = await tx.run<[organizationId: string]>(newsStatement, [after, limit])
  return rows.map(([organizationId]) => organizationId)
}

// Of other events only the number is needed. An event whose partition was dropped is left out.
const eventsStatement = {
  name: 'traffic_list_events',
  text: `
    select head.organization_id, head.summed_size::float8, head.org_seq::float8, entry.org_seq::float8, call.at, call.header,
      call.payload
    from audit_head as head
    left join lateral (
      select org_seq, event_day, event_id from audit_log
      where audit_log.organization_id = head.organization_id and audit_log.org_seq > head.summed_size
      order by audit_log.org_seq limit $2::integer
    ) as entry on true
    left join lateral (
      select event.at, event.header, event.payload from event
      where event.day = entry.event_day and event.id = entry.event_id
        and event.kind = 'enforcement' and event.header->>'phase' = 'call' offset 0
    ) as call on true
    where head.organization_id = any($1::text[])`,
}

type EventRow = [
  organizationId: string,
  summedSize: number,
  size: number,
  orgSeq: number | null,
  at: Date | null,
  header: Record<string, unknown> | null,
  payload: Buffer | null,
]

/** The next numbered events of each organization, and up to where the sums are complete with them. */
export async function listNews(
  tx: NamedTx,
  organizationIds: readonly string[],
  limitEach: number,
): Promise<{ calls: CallEvent[]; sizes: SummedSize[]; hasMore: boolean }> {
  const rows = await tx.run<EventRow>(eventsStatement, [
    binaryArray('text', organizationIds),
    limitEach,
  ])
  const calls: CallEvent[] = []
  const sizes: SummedSize[] = []
  let hasMore = false
  for (const [organizationId, ofOne] of Map.groupBy(rows, ([id]) => id)) {
    const [, before = 0, size = 0] = ofOne[0] ?? []
    const isCut = ofOne.length === limitEach
    // Numbers have no gaps, but entries that are too old were dropped: then there are fewer than the head says.
    const last = Math.max(...ofOne.map(([, , , orgSeq]) => orgSeq ?? 0))
    const after = isCut ? last : size
    sizes.push({ organizationId, before, after })
    hasMore ||= after < size
    for (const [, , , , at, header, payload] of ofOne) {
      if (at && header) calls.push({ organizationId, at, header, payload })
    }
  }
  return { calls, sizes, hasMore }
}

const moveStatement = {
  name: 'traffic_move_sizes',
  text: `
    update audit_head as head set summed_size = moved.after
    from unnest($1::text[], $2::bigint[], $3::bigint[]) as moved (organization_id, before, after)
    where head.organization_id = moved.organization_id and head.summed_size = moved.before
    returning head.organization_id`,
}

/** Throws if another worker has summed some of these events. */
export async function moveSummedSizes(tx: NamedTx, sizes: readonly SummedSize[]) {
  const moved = await tx.run(moveStatement, [
    binaryArray(
      'text',
      sizes.map(({ organizationId }) => organizationId),
    ),
    plainArray(sizes.map(({ before }) => before)),
    plainArray(sizes.map(({ after }) => after)),
  ])
  if (moved.length !== sizes.length) throw new Error('Another worker has summed the same events.')
}
