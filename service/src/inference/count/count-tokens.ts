import { CountTokens } from '@gatehouse/contract/count-tokens'

import type { Json } from '#formats/answer.ts'
import type { Turn } from '#formats/turn.ts'
import { ApiError } from '#platform/api-error.ts'

import {
  type CountAsker,
  type CountingRule,
  requireCountable,
  type TurnCounter,
} from './count-turn.ts'
import { withoutEarlierReasoning } from './last-turn.ts'
import type { UpstreamCounter } from './upstream-counter.ts'
import { toViolations } from './violations.ts'

/** Validates a body against its schema; throws 422 with the violations. */
export function readCountTokens(body: unknown): CountTokens {
  // zod's messages are not used, and building a hundred thousand of them is slow.
  const result = CountTokens.safeParse(body, { error: () => '' })
  if (result.success) return withDefaults(result.data)
  const violations = toViolations(result.error.issues, body)
  throw new ApiError('invalid_parameter', 'The body does not match its schema.', { violations })
}

/** Fills in the members that may be left out, so that the result is an ordinary Messages request. */
function withDefaults(body: CountTokens): CountTokens {
  const { messages, tool_choice: choice, thinking } = body
  return {
    ...body,
    messages: messages.map((message) => (message.role ? message : { ...message, role: 'user' })),
    ...(choice && { tool_choice: { ...choice, type: choice.type ?? 'tool' } }),
    ...(thinking && { thinking: { ...thinking, type: thinking.type ?? 'enabled' } }),
  }
}

/** True if the thinking of all earlier turns counts. 400 for an edit that is not supported. */
export function keepsAllThinking({ context_management: management }: CountTokens): boolean {
  const edits = management?.edits ?? []
  for (const [index, { type, keep }] of edits.entries()) {
    const param = `body.context_management.edits[${index}]`
    if (type !== 'clear_thinking_20251015') {
      throw unsupported(`${param}.type`, "'clear_thinking_20251015'")
    }
    if (keep !== undefined && keep !== 'all') throw unsupported(`${param}.keep`, "'all'")
  }
  return edits.some(({ keep }) => keep === 'all')
}

const unsupported = (param: string, only: string) =>
  new ApiError('unsupported_context_edit', `'${param}' must be ${only}.`, { param })

/** A count and where it comes from. */
export type InputCount = {
  tokens: number
  origin: 'upstream' | 'local-exact' | 'local-estimate'
}

type Counting = {
  turn: Turn
  keepsAll: boolean
  rule: CountingRule
  counter: TurnCounter
  /** The counter of the upstream; null if it has none. */
  upstream: UpstreamCounter | null
  /** Builds the request for the upstream's counter from the turn without the reasoning that does not count. */
  toRequest: (turn: Turn) => Json
  /** Headers of the caller, for a counter that speaks the caller's format. */
  headers?: Readonly<Record<string, string>>
}

/** Asks the upstream's counter if there is one; otherwise, or if that fails, counts locally. */
export async function countInput(counting: Counting, asker: CountAsker): Promise<InputCount> {
  const { upstream, rule, counter, keepsAll } = counting
  const turn = keepsAll ? counting.turn : withoutEarlierReasoning(counting.turn)
  requireCountable(turn, rule)
  const reported = await upstream?.count(
    counting.toRequest(turn),
    asker.cancellation.signal,
    counting.headers,
  )
  if (reported !== undefined) return { tokens: reported, origin: 'upstream' }
  const { tokens, origin } = await counter.count(turn, rule, asker)
  return { tokens, origin: origin === 'local-exact' ? origin : 'local-estimate' }
}
