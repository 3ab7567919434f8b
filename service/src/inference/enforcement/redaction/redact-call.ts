import type { Json } from '#formats/answer.ts'
import {
  decodeRequestTexts,
  readRequestTexts,
  type RequestTexts,
} from '#formats/texts/request-texts.ts'
import { shareOf } from '#http/principal.ts'
import type { Findings, CheckedCall, CheckedRequest } from '#inference/enforcement/findings.ts'
import type { ModelRequest } from '#inference/model-request.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { type Asker, runInTurns, type Steps } from '#platform/steps/steps.ts'
import { joinParts, type Passage } from '#text/passage.ts'

import { CallRedaction, type HideText } from './call-redaction.ts'

/** Counts the tokens of a request that was changed. */
export type EstimateTokens = (
  request: Pick<ModelRequest, 'turn' | 'model' | 'hasUnseenInput'>,
  caller: { owner: string; cancellation: Cancellation },
) => Promise<ModelRequest['estimate']>

/** Null for a call that is not redacted. This is decided here, once, for the request and the answer. */
export function openRedaction({ configured }: Findings): CallRedaction | null {
  const redaction = configured?.redaction
  return redaction ? new CallRedaction(redaction) : null
}

type Redacting<Request extends CheckedRequest> = {
  call: CheckedCall
  request: Request
  findings: Findings
  texts: RequestTexts
  asker: Asker
}

/** Redacts a request that no check refuses. Returns what may leave this process: the request, and its texts. */
export async function redactCall<Request extends CheckedRequest>(
  redaction: CallRedaction,
  { call, request, findings, texts, asker }: Redacting<Request>,
  estimate: EstimateTokens,
): Promise<{ request: Request; texts: RequestTexts }> {
  findings.redacted = redaction.counts
  const body = await runInTurns(redaction.redactRequest(request.body), asker)
  const toSend = body ? await withBody({ call, request, body }, estimate) : request
  // What spans several parts was replaced in the request itself.
  const redacted = body ? await runInTurns(readRequestTexts(toSend.turn), asker) : texts
  const sent = await runInTurns(hideTexts(redacted, redaction.hide), asker)
  redaction.forgetRequest()
  await runInTurns(decodeRequestTexts(sent), asker)
  return { request: toSend, texts: sent }
}

type Changed<Request extends CheckedRequest> = { call: CheckedCall; request: Request; body: Json }

/** The request with another body, and as many tokens as that has. */
export async function withBody<Request extends CheckedRequest>(
  { call, request, body }: Changed<Request>,
  estimate: EstimateTokens,
): Promise<Request> {
  const turn = call.format.readTurn(body)
  const { principal, cancellation, target } = call
  const caller = { owner: shareOf(principal), cancellation }
  const isCounted = target === 'count_tokens' // later, and not by an estimate
  return {
    ...request,
    body,
    turn,
    estimate: isCounted ? request.estimate : await estimate({ ...request, turn }, caller),
  }
}

/** Equal passages stay the same object, so that what was read of one is known of the other. */
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
