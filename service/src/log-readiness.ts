import type { Log } from '#platform/log.ts'

const lookMs = 1000

/**
 * Logs why a process is not ready, whenever the reasons change. It does not log at each probe, because some orchestrators probe
 * many times a second and others only now and then. A process that becomes ready within a second logs no reasons.
 */
export function logReadiness(findReasons: () => Promise<string[]>, log: Log) {
  let logged: string | undefined
  let isLooking = false
  async function look() {
    const reasons = (await findReasons()).join('; ')
    if (reasons === logged) return
    logged = reasons
    if (reasons === '') log.event('ready')
    else log.event('not_ready', { reasons })
  }
  const timer = setInterval(() => {
    if (isLooking) return
    isLooking = true
    void look()
      .catch((error: unknown) => log.problem('readiness_unknown', error))
      .finally(() => (isLooking = false))
  }, lookMs).unref()
  return { stop: () => clearInterval(timer) }
}
