import type { Piece } from '#formats/answer.ts'
import type { HideText } from '#inference/enforcement/redaction/call-redaction.ts'
import { type Asker, finish } from '#platform/steps/steps.ts'

import type { WindowDecision } from './answer-stage.ts'
import type { AnswerWindow } from './answer-windows.ts'
import { type Deciding, decideWindow } from './decide-window.ts'
import { guardPieces } from './guard-pieces.ts'
import { answerBlockedBy } from './guardrail-refusals.ts'

type GuardingWords = Deciding & { hide: HideText | null; asker: Asker }

/** The pieces of a text that leaves as it is or not at all: what would be rewritten is blocked. */
export const guardWords = (pieces: AsyncIterable<Piece>, guarding: GuardingWords) =>
  guardPieces(pieces, {
    decide: (window) => decide(guarding, window),
    prefill: '',
    interrupt: () => undefined,
  })

async function decide(
  { hide, asker, ...deciding }: GuardingWords,
  window: AnswerWindow,
): Promise<readonly WindowDecision[]> {
  const { enforcing, findings } = deciding
  const shown = hide ? hideWindow(window, hide) : window
  const decisions = await decideWindow(deciding, shown, asker.signal)
  return decisions.map((decision, index) => {
    const guardrail = enforcing[index]
    if (decision.kind !== 'rewrite' || !guardrail) return decision
    return { kind: 'end', toError: () => answerBlockedBy(findings, guardrail, null) }
  })
}

/** Windows are short. Nothing is rewritten, so no offset counts. */
const hideWindow = (window: AnswerWindow, hide: HideText): AnswerWindow => ({
  ...window,
  text: finish(hide(window.text)),
  newFrom: window.from,
})
