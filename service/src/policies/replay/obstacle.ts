import type { PolicyContent } from '@gatehouse/contract/policy'

import type { CompiledRule } from '#policies/rules/rule-program.ts'

import { readsOnlyScores } from './replay-call.ts'

/** Why what was recorded of calls cannot say anything about a draft; null if it can. */
export function findObstacle(
  draft: PolicyContent,
  rule: CompiledRule,
  published: PolicyContent | null,
): string | null {
  if (readsOnlyScores(rule) && draft.direction === 'request') return null
  if (!published) return 'The policy was never published, so no request was judged by it.'
  if (draft.rule !== published.rule) {
    return 'The rule is not the published one, and texts of requests and answers are not kept.'
  }
  if (published.direction !== 'both' && published.direction !== draft.direction) {
    return `The published version checks only the direction '${published.direction}'.`
  }
  return null
}
