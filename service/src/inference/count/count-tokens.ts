import { CountTokens } from '@gatehouse/contract/count-tokens'

import type { Json } from '#inference/answer.ts'
import type { Turn } from '#inference/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import { type CountingRule, requireCountable, type TurnCounter } from './count-turn.ts'
import { withoutEarlierReasoning } from './last-turn.ts'
import type { UpstreamCounter } from './upstream-counter.ts'
import { toViolations } from './violations.ts'

/** A body as its schema wants it, or 422 with everything that is wrong (G4.71). */
export function readCountTokens(body: unknown): CountTokens {
  // Nobody reads zod's own sentences, and a hundred thousand of them take their time.
  const result = CountTokens.safeParse(body, { error: () => '' })
  if (result.success) return result.data
  const violations = toViolations(result.error.issues, body)
  throw new ApiError('invalid_parameter', 'The body does not fit its schema.', { violations })
}

/** Do all replayed thinking blocks count? 400 for an edit that we do not offer (G4.68). */
export function keepsAllThinking({ context_management: management }: CountTokens): boolean {
  const edits = management?.edits ?? []
  for (const [index, { type, keep }] of edits.entries()) {
    const place = `body.context_management.edits[${index}]`
    if (type !== 'clear_thinking_20251015') {
      throw unsupported(`${place}.type`, "'clear_thinking_20251015'")
    }
    if (keep !== undefined && keep !== 'all') throw unsupported(`${place}.keep`, "'all'")
  }
  return edits.some(({ keep }) => keep === 'all')
}

const unsupported = (param: string, only: string) =>
  new ApiError('unsupported_context_edit', `'${param}' must be ${only}.`, { param })

/** A count, and where it comes from. */
export type InputCount = {
  tokens: number
  origin: 'upstream' | 'local-exact' | 'local-estimate'
}

type Counting = {
  turn: Turn
  keepsAll: boolean
  rule: CountingRule
  counter: TurnCounter
  /** Null where the upstream has no counter. */
  upstream: UpstreamCounter | null
  /** The request for the upstream's counter, made from the turn whose reasoning counts. */
  toRequest: (turn: Turn) => Json
  /** Of the caller's, for a counter that speaks the caller's format. */
  headers?: Readonly<Record<string, string>>
}

/** Asks the upstream's own counter where there is one; else, or when it fails, counts here (G4.67). */
export async function countInput(counting: Counting, signal: AbortSignal): Promise<InputCount> {
  const { upstream, rule, counter, keepsAll } = counting
  const turn = keepsAll ? counting.turn : withoutEarlierReasoning(counting.turn)
  requireCountable(turn)
  const answered = await upstream?.ask(counting.toRequest(turn), signal, counting.headers)
  if (answered !== undefined) return { tokens: answered, origin: 'upstream' }
  const { tokens, origin } = await counter.count(turn, rule, signal)
  return { tokens, origin }
}
