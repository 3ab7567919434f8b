import type { Piece } from '#formats/answer.ts'
import { createFindings, type Findings, type CheckedCall } from '#inference/enforcement/findings.ts'
import type { HideText } from '#inference/enforcement/redaction/call-redaction.ts'
import { isBlock } from '#inference/enforcement/refusals.ts'
import type { Questions } from '#moderation/scorer.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'

import { replaceInStream, replaceWhole } from './replace-blocked.ts'
import type { Replace, Replacement } from './replacement.ts'

type Replacing = {
  replace: Replace
  findings: Findings
  isStreamed: boolean
  call: Pick<CheckedCall, 'principal' | 'cancellation'>
  /** Guards one answer of this call, and adds what it finds to these findings. */
  guard(pieces: AsyncIterable<Piece>, findings: Findings): AsyncIterable<Piece>
  /** Null if nothing is redacted. */
  hide: HideText | null
  asker: Asker
  /** Counts the questions to the rewriter. */
  questions: Questions
}

/** Replaces the blocked request or the blocked answer of one call. */
export type CallReplacement = {
  /** Returns the replacement for a call that ended with this error. Null if nothing is replaced and the call is refused. */
  replace(error: unknown): Promise<Replacement | null>
  /** Passes on the answer; if its guard ends it, the replacement follows. */
  replaceBlocked(guarded: AsyncIterable<Piece>): AsyncIterable<Piece>
}

/**
 * For a call under a configuration that wants a replacement instead of a refusal. Only what the findings name as replaceable is
 * replaced.
 */
export function openReplacement(replacing: Replacing): CallReplacement {
  const { replace, findings, isStreamed, call, guard, hide, asker, questions } = replacing
  const replaceError = async (error: unknown) => {
    const blocked = findings.replaceable
    if (!blocked || !isBlock(error)) return null
    const text = hide ? await runInTurns(hide(blocked.text), asker) : blocked.text
    const replacement = await replace(
      { ...blocked, text },
      {
        organizationId: call.principal.organizationId,
        cancellation: call.cancellation,
        questions,
        // What is found in a replacement is not the reason why the call was blocked.
        judge: (pieces) => guard(pieces, createFindings()),
      },
    )
    findings.replacement = replacement
    return replacement
  }
  const passOn = isStreamed ? replaceInStream : replaceWhole
  return {
    replace: replaceError,
    replaceBlocked: (guarded) => passOn(guarded, replaceError),
  }
}
