const units = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const

/** "3 hours ago", "in 2 days", "just now", in the language of the browser. */
export function describeAge(atMs: number, nowMs: number, language?: string): string {
  const seconds = Math.round((atMs - nowMs) / 1000)
  const [unit, size] = units.find(([, each]) => Math.abs(seconds) >= each) ?? ['minute', 0]
  if (size === 0) return 'just now'
  const format = new Intl.RelativeTimeFormat(language, { numeric: 'always' })
  return format.format(Math.trunc(seconds / size), unit)
}

/** As it is in logs and events. */
export const toUtc = (date: Date): string =>
  `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`
