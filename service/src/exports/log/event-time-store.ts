import { type RawBuilder, sql } from 'kysely'

import { firstUuidAt, momentOfUuid } from '#platform/id.ts'

// Events in time. An id begins with the time of its event, and the day of the id says in which partition the event is.

export type TimeRange = {
  /** The first moment. */
  from?: Date | undefined
  /** The moment after the last. */
  to?: Date | undefined
}

/** Whether an event lies in the range, and after a given one in the order that is asked for. */
export function isWithin(
  { from, to }: TimeRange,
  { after, order }: { after?: string | undefined; order: 'asc' | 'desc' } = { order: 'asc' },
): RawBuilder<unknown> {
  const lowest = from && firstUuidAt(from)
  const highest = to && firstUuidAt(to)
  const lower = order === 'asc' ? later(lowest, after) : lowest
  const upper = order === 'desc' ? earlier(highest, after) : highest
  // Without a bound too, so that the text of a query does not depend on which there are: it is prepared once.
  return sql`day >= ${dayOf(lower) ?? '-infinity'}::date and day <= ${dayOf(upper) ?? 'infinity'}::date
    and id > ${lower ?? lowestUuid}::uuid and id < ${upper ?? highestUuid}::uuid`
}

const lowestUuid = '00000000-0000-0000-0000-000000000000'
const highestUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

const later = (one: string | undefined, other: string | undefined) =>
  one === undefined || (other !== undefined && other > one) ? other : one
const earlier = (one: string | undefined, other: string | undefined) =>
  one === undefined || (other !== undefined && other < one) ? other : one

/** The UTC day that an id begins with, among those that PostgreSQL's dates are written with here: up to the year 9999. */
function dayOf(id: string | undefined): string | undefined {
  if (id === undefined) return undefined
  const ms = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)
  return new Date(Math.min(ms, lastMs)).toISOString().slice(0, 10)
}

/** The end of the year 9999. An offset may lead beyond it. */
const lastMs = 253_402_300_799_999

/** What lies between two moments, for columns. Ids are between the bounds. */
export const boundsOf = ({ from, to }: { from: Date; to: Date }) => ({
  lower: firstUuidAt(from),
  upper: firstUuidAt(to),
  firstDay: dayOf(firstUuidAt(from)),
  lastDay: dayOf(firstUuidAt(new Date(to.getTime() - 1))),
})

/** The day of the partition that an event with this id would be in; undefined: no event has such an id. */
export function dayOfEvent(id: string): string | undefined {
  const moment = momentOfUuid(id)
  return moment && moment.getTime() <= lastMs ? dayOf(id) : undefined
}
