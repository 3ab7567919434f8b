import { ticksPerSecond } from '../process-usage.ts'

/**
 * The time that the cores were busy since the machine started, from the text of /proc/stat. Time that a hypervisor gave to
 * other machines counts: it was not there for the measurement.
 */
export function busySecondsIn(stat: string): number {
  const [, ...fields] = (/^cpu .*$/m.exec(stat)?.[0] ?? '').split(/\s+/)
  const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = fields.map(Number)
  return (user + nice + system + irq + softirq + steal) / ticksPerSecond
}
