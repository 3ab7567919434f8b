import type { Piece } from '#formats/answer.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import type { HideText } from '#inference/enforcement/redaction/call-redaction.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import { NotAsked } from '#moderation/scorer.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Asker } from '#platform/steps/steps.ts'

import { type AnswerWindow, guardrailHold } from './answer-windows.ts'
import { createAskingForCall, type GuardedCall, type GuardrailDeps } from './ask-guardrails.ts'
import { checkRequest, type OpenGuardrail, type SentRequest } from './check-request.ts'
import { decideWindow, questionAbout } from './decide-window.ts'
import { guardPieces, watchPieces } from './guard-pieces.ts'
import { guardWords } from './guard-words.ts'
import { GuardrailWatch } from './watch-calls.ts'

/** The guardrails of one call. */
export type CallGuardrails = {
  /** Whether what they decide counts, so that the call waits for them. */
  readonly areEnforcing: boolean
  /** How many characters of an answer they hold back at most. */
  readonly hold: number
  /** Asks about the request, which they may rewrite. Returns why it is refused. */
  checkRequest(sent: SentRequest): Promise<ApiError | null>
  /** The answer as far as they let it leave, and as they rewrite it. `interrupt` ends it at its source. */
  guardAnswer(
    pieces: AsyncIterable<Piece>,
    answer: { prefill: string; interrupt(): void },
  ): AsyncIterable<Piece>
  /**
   * A text that leaves instead of an answer or besides it, such as the words of a provider's error: throws where it may not leave,
   * also where it could only leave rewritten. What is decided goes to these findings.
   */
  guardWords(
    pieces: AsyncIterable<Piece>,
    words: { noted: Findings; hide: HideText | null },
  ): AsyncIterable<Piece>
}

/** Opens the guardrails of a call, in the order in which they are asked. */
export function openCallGuardrails(
  deps: GuardrailDeps,
  guardrails: readonly Guardrail[],
  guarded: GuardedCall & { asker: Asker },
): CallGuardrails {
  const { call, findings, asker } = guarded
  const asking = createAskingForCall(deps, guarded)
  const all: readonly OpenGuardrail[] = guardrails.map((guardrail) => ({
    guardrail,
    watch: guardrail.mode === 'monitoring' ? new GuardrailWatch(guardrail, asking) : null,
  }))
  const watches = all.flatMap(({ watch }) => watch ?? [])
  const enforcing = guardrails.filter(({ mode }) => mode === 'enforcing')

  /** The event has what monitoring guardrails say, unless the caller is gone. */
  async function settle() {
    if (call.cancellation.isCancelled) for (const watch of watches) watch.stop()
    await Promise.all(watches.map((watch) => watch.settle()))
  }

  function watchWindow(window: AnswerWindow) {
    for (const watch of watches) watch.ask(questionAbout(window))
  }

  return {
    areEnforcing: enforcing.length > 0,
    hold: enforcing.length > 0 ? guardrailHold : 0,
    async checkRequest(sent) {
      let isAllowed = false
      try {
        const refusal = await checkRequest({ all, asking, findings, asker }, sent)
        isAllowed = refusal === null
        return refusal
      } finally {
        if (!isAllowed) await settle()
      }
    },
    async *guardAnswer(pieces, answer) {
      const aborting = new AbortController()
      const signal = AbortSignal.any([call.cancellation.signal, aborting.signal])
      const decide = (window: AnswerWindow) => {
        watchWindow(window)
        return decideWindow({ enforcing, asking, findings }, window, signal)
      }
      try {
        yield* enforcing.length > 0
          ? guardPieces(pieces, { ...answer, decide })
          : watchPieces(pieces, watchWindow, answer.prefill)
      } finally {
        aborting.abort(answerIsOver)
        await settle()
      }
    },
    guardWords(pieces, { noted, hide }) {
      if (enforcing.length === 0) return pieces
      const apart = createAskingForCall(deps, { ...guarded, findings: noted })
      return guardWords(pieces, { enforcing, asking: apart, findings: noted, hide, asker })
    },
  }
}

/** The guardrails of a count of tokens: it has no answer, and where they would have to be asked it says so. */
export const unaskedGuardrails = (guardrails: readonly Guardrail[]): CallGuardrails => ({
  areEnforcing: false,
  hold: 0,
  async checkRequest() {
    if (guardrails.some(({ mode }) => mode === 'enforcing')) throw new NotAsked('guardrail')
    return null
  },
  guardAnswer: (pieces) => pieces,
  guardWords: (pieces) => pieces,
})

/** One for all answers: making an error for each would cost more than all else that ends it. */
const answerIsOver = new Error('The answer is over.')
