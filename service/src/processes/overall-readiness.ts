/** `reasons`: why it should get no traffic, empty if it is ready; `isServing`: whether it gets traffic nevertheless. */
export type ProcessReadiness = { number: number; isServing: boolean; reasons: readonly string[] }

export type OverallReadiness = {
  status: 'ok' | 'degraded' | 'unavailable'
  reasons: string[]
}

/**
 * One answer for all processes. A process that is starting or draining only degrades the whole, because the others take its
 * callers. One that serves although it is not ready makes the whole unavailable: it gets its part of the callers, and only
 * the load balancer can keep them away.
 */
export function judgeReadiness(processes: readonly ProcessReadiness[]): OverallReadiness {
  const unready = processes.filter(({ reasons }) => reasons.length > 0)
  const reasons = unready.flatMap(({ number, reasons }) =>
    reasons.map((reason) => `process ${number}: ${reason}`),
  )
  if (unready.length === 0) return { status: 'ok', reasons }
  const isAnyReady = unready.length < processes.length
  const canServe = isAnyReady && unready.every(({ isServing }) => !isServing)
  return { status: canServe ? 'degraded' : 'unavailable', reasons }
}
