const second = 1000
const minute = 60 * second
const hour = 60 * minute

/** `850ms`, `59s`, `1.5s`, `6m0s`, `23h12m0s`; zero is `0s`. */
export function formatDuration(ms: number): string {
  if (ms <= 0) return '0s'
  const whole = Math.ceil(ms)
  if (whole < second) return `${whole}ms`
  if (whole < minute) return `${whole / second}s`
  const seconds = (whole % minute) / second
  const minutes = Math.floor(whole / minute) % 60
  return whole < hour
    ? `${minutes}m${seconds}s`
    : `${Math.floor(whole / hour)}h${minutes}m${seconds}s`
}
