import { formatDuration } from './duration.ts'
import type { Limits, Verdict } from './limits.ts'
import { findNearestLimit, type NearestLimit } from './nearest-limit.ts'

/** The limit headers of every answer of an inference endpoint. */
export function inferenceHeaders(verdict: Verdict, limits: Limits): Record<string, string> {
  const headers: Record<string, string> = {}
  const requests = findNearestLimit('requests', verdict, limits)
  if (requests) addHeaders(headers, names.requests, requests)
  const tokens = findNearestLimit('tokens', verdict, limits)
  if (!tokens) return headers
  addHeaders(headers, names.tokens, tokens)
  const isOfProject = tokens.scope === 'project' && tokens.metric === 'tokens_per_minute'
  if (isOfProject) addHeaders(headers, names.projectTokens, tokens)
  return headers
}

const namesOf = (name: string) => ({
  limit: `x-ratelimit-limit-${name}`,
  remaining: `x-ratelimit-remaining-${name}`,
  reset: `x-ratelimit-reset-${name}`,
})
const names = {
  requests: namesOf('requests'),
  tokens: namesOf('tokens'),
  projectTokens: namesOf('project-tokens'),
}

function addHeaders(
  headers: Record<string, string>,
  { limit, remaining, reset }: ReturnType<typeof namesOf>,
  nearest: NearestLimit,
) {
  headers[limit] = String(nearest.limit)
  headers[remaining] = String(nearest.remaining)
  headers[reset] = formatDuration(nearest.resetMs)
}
