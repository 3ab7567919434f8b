import { formatDuration } from './duration.ts'
import type { Limits, Verdict } from './limits.ts'
import { findNearestLimit, type NearestLimit } from './nearest-limit.ts'

/** The limit headers of every answer of an inference endpoint. */
export function inferenceHeaders(verdict: Verdict, limits: Limits): Record<string, string> {
  const tokens = findNearestLimit('tokens', verdict, limits)
  const isOfProject = tokens?.scope === 'project' && tokens.metric === 'tokens_per_minute'
  return {
    ...toHeaders('requests', findNearestLimit('requests', verdict, limits)),
    ...toHeaders('tokens', tokens),
    ...(isOfProject && toHeaders('project-tokens', tokens)),
  }
}

function toHeaders(name: string, nearest: NearestLimit | undefined): Record<string, string> {
  if (!nearest) return {}
  return {
    [`x-ratelimit-limit-${name}`]: String(nearest.limit),
    [`x-ratelimit-remaining-${name}`]: String(nearest.remaining),
    [`x-ratelimit-reset-${name}`]: formatDuration(nearest.resetMs),
  }
}
