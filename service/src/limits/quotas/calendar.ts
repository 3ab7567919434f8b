/** Windows of the calendar, in UTC; weeks begin on Monday. */
export const calendarWindows = ['daily', 'weekly', 'monthly'] as const
export type CalendarWindow = (typeof calendarWindows)[number]

/** One day, week or month. */
export type Period = {
  /** Unique among all periods, such as `w2967`. */
  name: string
  /** The first day, and the day after the last, such as `2026-11-16`. */
  firstDay: string
  endDay: string
  endsAtMs: number
}

const dayMs = 86_400_000

export const dayOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 10)

/** The period of a window that a moment is in. */
export function periodAt(window: CalendarWindow, atMs: number): Period {
  const day = Math.floor(atMs / dayMs)
  if (window === 'daily') return toPeriod(`d${day}`, day, day + 1)
  if (window === 'weekly') {
    // Day 0, 1 January 1970, is a Thursday: three days after a Monday.
    const week = Math.floor((day + 3) / 7)
    const monday = week * 7 - 3
    return toPeriod(`w${week}`, monday, monday + 7)
  }
  const date = new Date(atMs)
  const [year, month] = [date.getUTCFullYear(), date.getUTCMonth()]
  return toPeriod(
    `m${year * 12 + month}`,
    Date.UTC(year, month) / dayMs,
    Date.UTC(year, month + 1) / dayMs,
  )
}

const toPeriod = (name: string, first: number, end: number): Period => ({
  name,
  firstDay: dayOf(first * dayMs),
  endDay: dayOf(end * dayMs),
  endsAtMs: end * dayMs,
})
