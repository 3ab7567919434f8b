/** The largest value a Date can hold; a larger one is printed as a number. */
const secondsMax = 8.64e12

/** Members with seconds since 1970 whose names do not end in `_at`. */
const namesOfTimes = new Set(['created', 'start', 'from', 'to'])

/** The time that a member holds: seconds since 1970, or a text as RFC 3339 writes it. Undefined: it is something else. */
export function timeIn(name: string, value: unknown): Date | undefined {
  if (typeof value === 'string') return isMoment(value) ? new Date(value) : undefined
  const isNamed = name.endsWith('_at') || namesOfTimes.has(name)
  if (typeof value !== 'number' || !isNamed || Math.abs(value) > secondsMax) return undefined
  return new Date(value * 1000)
}

const isMoment = (text: string) =>
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/.test(text) && !Number.isNaN(Date.parse(text))

/** Every user of an organization sees the same time, so it is UTC. `--json` has fractions of a second. */
export const secondOf = (time: Date) => `${printed(time, 'seconds')} UTC`

/** For tables, where a column's head says that it is UTC. */
export const minuteOf = (time: Date) => printed(time, 'minutes')

function printed(time: Date, precision: 'seconds' | 'minutes'): string {
  const [day = '', clock = ''] = time.toISOString().split('T')
  return `${day} ${clock.slice(0, precision === 'seconds' ? 8 : 5)}`
}
