import type { Piece } from '#formats/answer.ts'
import type { HideText } from '#inference/redacting/call-redaction.ts'
import { replaceInStream, replaceWhole } from '#inference/replacing/replace-blocked.ts'
import type { Replace } from '#inference/replacing/replacement.ts'
import type { Questions } from '#moderation/scorer.ts'
import { type Asker, runInTurns } from '#text/steps.ts'

import {
  createFindings,
  type Findings,
  type JudgedCall,
  type JudgedRequest,
  type Judgement,
} from './verdicts/judgement.ts'
import { isBlock } from './verdicts/policy-refusal.ts'

type Replacing = {
  replace: Replace
  call: Pick<JudgedCall, 'principal' | 'cancellation'>
  /** Guards one answer of this call, and writes what it finds to these findings. */
  guard(pieces: AsyncIterable<Piece>, findings: Findings): AsyncIterable<Piece>
  /** Null where nothing is redacted. */
  hide: HideText | null
  asker: Asker
  /** What the rewriter is asked counts in these. */
  questions: Questions
}

/**
 * For a call under a configuration that wants other words instead of a refusal: has them written for its request, and for its
 * answer, which is rebuilt. Both only where the findings name what was blocked as replaceable.
 */
export function replaceBlockedCall(judgement: Judgement<JudgedRequest>, replacing: Replacing) {
  const { replace, call, guard, hide, asker, questions } = replacing
  const replaceError = async (error: unknown) => {
    const blocked = judgement.replaceable
    if (!blocked || !isBlock(error)) return null
    const text = hide ? await runInTurns(hide(blocked.text), asker) : blocked.text
    const replacement = await replace(
      { ...blocked, text },
      {
        organizationId: call.principal.organizationId,
        cancellation: call.cancellation,
        questions,
        // What is found in a replacement is not what the call was blocked for.
        judge: (pieces) => guard(pieces, createFindings()),
      },
    )
    judgement.replacement = replacement
    return replacement
  }
  const passOn = judgement.request.isStreamed ? replaceInStream : replaceWhole
  judgement.replace = replaceError
  judgement.guard = (pieces) => passOn(guard(pieces, judgement), replaceError)
}
