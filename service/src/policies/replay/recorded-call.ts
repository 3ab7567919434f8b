import { z } from 'zod'

import type { ScoreMap } from '#policies/rules/score.ts'

const direction = z.enum(['request', 'response', 'history'])
const Score = z.object({
  policy_id: z.string(),
  version: z.int(),
  direction,
  score: z.number(),
})

/** The members of an event's header that replays read (docs/specification/audit-events.md#policy-members). */
const Header = z.object({
  phase: z.enum(['call', 'monitoring']),
  call_event_id: z.string().optional(),
  project_id: z.string().nullable(),
  policy_epoch: z.number().nullish(),
  policy_target: z.string().nullish(),
  outcome: z.string().optional(),
  status: z.number().optional(),
  matches: z.array(Score.extend({ mode: z.enum(['monitoring', 'enforcing']) })).default([]),
  scores: z.array(Score).default([]),
  category_scores: z.array(z.object({ category: z.string(), score: z.number() })).default([]),
  policies_unevaluated: z.array(z.string()).default([]),
})
type Header = z.infer<typeof Header>

/** What is known of a call that was judged: no text. */
export type RecordedCall = Pick<Header, 'matches' | 'scores'> & {
  readonly projectId: string | null
  /** Which state of the policies it was judged by. */
  readonly epoch: number
  /** Where something was blocked: other rules may not have seen all of it. */
  readonly blockedIn: 'request' | 'response' | null
  readonly hasAnswer: boolean
  /** Ids of policies that could not be evaluated. */
  readonly unevaluated: readonly string[]
  /** Of the request. */
  readonly categories: ScoreMap
}

export type RecordedEvent = { id: string; at: Date; header: unknown }

/**
 * Puts calls together from their events, which come newest first: what monitoring has found comes before the call itself.
 * Calls that were refused for other reasons were not judged to the end, and those that only count tokens have no answer to be
 * judged; they are left out.
 */
export function createCallReader() {
  const found = new Map<string, Header>()
  return ({ id, header }: RecordedEvent): RecordedCall | null => {
    const read = Header.parse(header)
    if (read.phase === 'monitoring') {
      found.set(read.call_event_id ?? '', read)
      return null
    }
    const later = found.get(id)
    found.delete(id)
    return isReplayed(read) ? toCall(read, later) : null
  }
}

const judgedOutcomes: readonly unknown[] = ['completed', 'cut', 'failed', 'blocked']

/** A policy that refused an earlier answer would do so again, so its verdict on the request itself is not known. */
const isOfHistory = ({ direction, mode }: Header['matches'][number]) =>
  direction === 'history' && mode === 'enforcing'

const isReplayed = ({ outcome, policy_epoch, policy_target, matches }: Header) =>
  !matches.some(isOfHistory) &&
  judgedOutcomes.includes(outcome) &&
  typeof policy_epoch === 'number' &&
  policy_target !== 'messages.count_tokens'

function toCall(call: Header, later: Header | undefined): RecordedCall {
  // Only the answer to a request that was not sent has its status in the event.
  const blockedBefore = call.status !== undefined
  const blockedIn = blockedBefore ? ('request' as const) : ('response' as const)
  return {
    projectId: call.project_id,
    epoch: call.policy_epoch ?? 0,
    blockedIn: call.outcome === 'blocked' ? blockedIn : null,
    hasAnswer: !blockedBefore && call.outcome !== 'failed',
    matches: [...call.matches, ...(later?.matches ?? [])],
    scores: call.scores,
    unevaluated: [...call.policies_unevaluated, ...(later?.policies_unevaluated ?? [])],
    categories: new Map(call.category_scores.map(({ category, score }) => [category, score])),
  }
}
