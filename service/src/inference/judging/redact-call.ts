import {
  decodeTextsInSteps,
  readTextsInSteps,
  type RequestTexts,
} from '#formats/texts/request-texts.ts'
import { shareOf } from '#http/principal.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import { CallRedaction, type HideText } from '#inference/redacting/call-redaction.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { joinParts, type Passage } from '#text/passage.ts'
import { type Asker, runInTurns, type Steps } from '#text/steps.ts'

import type { Findings, JudgedCall, JudgedRequest, Judgement } from './verdicts/judgement.ts'

/** Counts the tokens of a request that was changed. */
export type EstimateTokens = (
  request: Pick<ModelRequest, 'turn' | 'model' | 'hasUnseenInput'>,
  caller: { owner: string; cancellation: Cancellation },
) => Promise<ModelRequest['estimate']>

/** Null for a call that is not redacted: that is decided here, once, for its request and its answer. */
export function openRedaction({ configured }: Findings): CallRedaction | null {
  const redaction = configured?.redaction
  return redaction ? new CallRedaction(redaction) : null
}

type Redacted<Request extends JudgedRequest> = {
  call: JudgedCall
  judgement: Judgement<Request>
  texts: RequestTexts
  asker: Asker
  estimate: EstimateTokens
}

/**
 * Redacts a request that rules have let pass, in the judgement. Returns its texts as those may see them who are asked about
 * it outside of this process.
 */
export async function redactCall<Request extends JudgedRequest>(
  redaction: CallRedaction,
  { call, judgement, texts, asker, estimate }: Redacted<Request>,
): Promise<RequestTexts> {
  judgement.redacted = redaction.counts
  const { request } = judgement
  const body = await runInTurns(redaction.redactRequest(request.body), asker)
  if (body) {
    const turn = call.format.readTurn(body)
    const { principal, cancellation, target } = call
    const caller = { owner: shareOf(principal), cancellation }
    const isCounted = target === 'count_tokens' // later, and not by an estimate
    judgement.request = {
      ...request,
      body,
      turn,
      estimate: isCounted ? request.estimate : await estimate({ ...request, turn }, caller),
    }
  }
  // What spans several parts was replaced in the request itself.
  const redacted = body ? await runInTurns(readTextsInSteps(judgement.request.turn), asker) : texts
  const sent = await runInTurns(hideTexts(redacted, redaction.hide), asker)
  redaction.forgetRequest()
  await runInTurns(decodeTextsInSteps(sent), asker)
  return sent
}

/** Equal passages stay the same object: whoever has read one knows it again. */
function* hideTexts(texts: RequestTexts, hide: HideText): Steps<RequestTexts> {
  const hidden = new Map<Passage, Passage>()
  for (const passage of passagesOf(texts)) {
    if (!hidden.has(passage)) hidden.set(passage, joinParts(yield* hideEach(passage.parts, hide)))
  }
  const hiddenOf = <P extends Passage>(passage: P): P => ({ ...passage, ...hidden.get(passage) })
  const said = new Map(texts.text.map((passage) => [passage, hiddenOf(passage)]))
  const find = (passages: RequestTexts['text']) =>
    passages.map((passage) => said.get(passage) ?? hiddenOf(passage))
  return {
    ...texts,
    text: find(texts.text),
    userText: find(texts.userText),
    lastMessage: find(texts.lastMessage),
    system: find(texts.system),
    tools: find(texts.tools),
    history: texts.history.map((answer) => ({
      ...answer,
      said: answer.said.map(hiddenOf),
      question: answer.question.map(hiddenOf),
    })),
  }
}

const passagesOf = ({ text, lastMessage, history }: RequestTexts): Passage[] => [
  ...text,
  ...lastMessage,
  ...history.flatMap(({ said, question }) => [...said, ...question]),
]

export function* hideEach(texts: readonly string[], hide: HideText): Steps<string[]> {
  const hidden: string[] = []
  for (const text of texts) {
    hidden.push(yield* hide(text))
    yield
  }
  return hidden
}
