import { ApiError } from '#platform/api-error.ts'

const dayMs = 24 * 60 * 60 * 1000
const daysDefault = 30

/** The first and the last day of a report, both included; 422 when there are none or too many. */
export function readDays(
  { from, to }: { from?: string | undefined; to?: string | undefined },
  now: Date,
  daysMax: number,
): { from: string; to: string } {
  const lastMs = to === undefined ? now.getTime() : Date.parse(to)
  const last = toDay(lastMs)
  const first = from ?? toDay(lastMs - (daysDefault - 1) * dayMs)
  const days = (Date.parse(last) - Date.parse(first)) / dayMs + 1
  const param = from === undefined ? 'query.to' : 'query.from'
  if (days < 1) {
    throw new ApiError('invalid_parameter', `'${param}' must not be later than to.`, { param })
  }
  if (days <= daysMax) return { from: first, to: last }
  const tooMany = `'${param}' must be at most ${daysMax} days before to.`
  throw new ApiError('invalid_parameter', tooMany, { param })
}

const toDay = (timeMs: number) => new Date(timeMs).toISOString().slice(0, 10)
