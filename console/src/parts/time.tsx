import { describeAge, toUtc } from './time-words.ts'

/** A time as a distance from now; the whole of it, in UTC too, on hover. */
export function Time({ at }: { at: number }) {
  const date = new Date(at * 1000)
  const local = date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'short' })
  return (
    <time dateTime={date.toISOString()} title={`${local} · ${toUtc(date)}`}>
      {describeAge(date.getTime(), Date.now())}
    </time>
  )
}

/** A time that may not have come yet, or never will. */
export function TimeOr({ at, none }: { at: number | null | undefined; none: string }) {
  return at === null || at === undefined ? <span className="muted">{none}</span> : <Time at={at} />
}
