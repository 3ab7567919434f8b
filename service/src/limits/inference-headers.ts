import { formatDuration } from './duration.ts'
import type { Limits, Verdict } from './limits.ts'
import { closest, type Standing } from './standing.ts'

/** What every answer of an inference endpoint says about limits (contract 8.4). */
export function inferenceHeaders(verdict: Verdict, limits: Limits): Record<string, string> {
  const tokens = closest('tokens', verdict, limits)
  const isProjects = tokens?.scope === 'project' && tokens.metric === 'tokens_per_minute'
  return {
    ...headersOf('requests', closest('requests', verdict, limits)),
    ...headersOf('tokens', tokens),
    ...(isProjects && headersOf('project-tokens', tokens)),
  }
}

function headersOf(what: string, standing: Standing | undefined): Record<string, string> {
  if (!standing) return {}
  return {
    [`x-ratelimit-limit-${what}`]: String(standing.limit),
    [`x-ratelimit-remaining-${what}`]: String(standing.remaining),
    [`x-ratelimit-reset-${what}`]: formatDuration(standing.resetMs),
  }
}
