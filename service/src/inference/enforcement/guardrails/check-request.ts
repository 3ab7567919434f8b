import type { Json } from '#formats/answer.ts'
import type { RequestTexts } from '#formats/texts/request-texts.ts'
import type { Findings } from '#inference/enforcement/findings.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import type { Guardrail } from '#moderation/guardrails/guardrail.ts'
import type { ApiError } from '#platform/api-error.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'

import { type AskingForCall, type GuardrailVerdict, mayPass } from './ask-guardrails.ts'
import { requestBlockedBy, requestUndecided } from './guardrail-refusals.ts'
import { type AskedRequest, readAskedRequest, rewriteRequest } from './request-texts.ts'
import type { GuardrailWatch } from './watch-calls.ts'

/** The request that will be sent. */
export type SentRequest = {
  readonly body: Json
  readonly texts: RequestTexts
  /** Sends this one instead. Throws a GuardrailFailure where more would be sent than credits are held for. */
  replaceWith(body: Json): Promise<void>
}

/** A guardrail of a call; `watch` is null where what it says counts. */
export type OpenGuardrail = { readonly guardrail: Guardrail; readonly watch: GuardrailWatch | null }

type Checking = {
  all: readonly OpenGuardrail[]
  asking: AskingForCall
  findings: Findings
  asker: Asker
}

/** Asks guardrails about a request, one after the other: each sees what those before it have rewritten. Returns why it is refused. */
export async function checkRequest(
  checking: Checking,
  sent: SentRequest,
): Promise<ApiError | null> {
  const { all, asking, asker } = checking
  for (const { guardrail, watch } of all) {
    const asked = await runInTurns(readAskedRequest(sent.body, sent.texts), asker)
    if (asked.texts.length === 0) continue
    const question = { direction: 'request', texts: asked.texts, isLast: true } as const
    if (watch) {
      watch.ask(question)
      continue
    }
    const said = await asking.ask(guardrail, question, asker.signal)
    const verdict = await rewriteIfAsked(said, { sent, asked }, asker)
    asking.report(guardrail, 'request', verdict)
    const refusal = decide(guardrail, verdict, checking)
    if (refusal) return refusal
  }
  return null
}

function decide(
  guardrail: Guardrail,
  { outcome }: GuardrailVerdict,
  { findings }: Checking,
): ApiError | null {
  if (outcome.kind === 'block') return requestBlockedBy(findings, guardrail, outcome.reason)
  if (outcome.kind !== 'failed' || mayPass(guardrail, outcome.failure)) return null
  return requestUndecided(guardrail, outcome.failure)
}

/** Rewrites the request as a guardrail wants; that fails where it could not be sent. */
async function rewriteIfAsked(
  said: GuardrailVerdict,
  { sent, asked }: { sent: SentRequest; asked: AskedRequest },
  asker: Asker,
): Promise<GuardrailVerdict> {
  const { outcome, tookMs } = said
  if (outcome.kind !== 'rewrite') return said
  try {
    await sent.replaceWith(await runInTurns(rewriteRequest(sent.body, asked, outcome.edits), asker))
    return said
  } catch (error) {
    if (!(error instanceof GuardrailFailure)) throw error
    return { outcome: { kind: 'failed', failure: error }, tookMs }
  }
}
