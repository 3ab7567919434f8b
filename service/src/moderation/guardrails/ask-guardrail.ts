import { signWebhook } from '#platform/calls/webhook-signature.ts'
import type { Clock } from '#platform/clock.ts'

import { GuardrailFailure } from './guardrail-failure.ts'
import type { Guardrail } from './guardrail.ts'
import { type GuardrailQuestion, writeGuardrailQuestion } from './question.ts'
import { type GuardrailDecision, readReply } from './read-reply.ts'
import type { SendQuestion } from './send-question.ts'

type Deps = { send: SendQuestion; now: Clock }

/** What a guardrail says, or why it has said nothing. What follows from it for a call is decided by its caller. */
export type GuardrailOutcome =
  | GuardrailDecision
  | { readonly kind: 'failed'; readonly failure: GuardrailFailure }

/** The second attempt is for a connection that the server closed just when it was used again. */
const attemptsMax = 2

/** Asks a guardrail about texts. Throws nothing but the reason of the signal. */
export async function askGuardrail(
  { send, now }: Deps,
  guardrail: Guardrail,
  question: GuardrailQuestion,
  signal: AbortSignal,
): Promise<GuardrailOutcome> {
  const { deadlineMs, secret } = guardrail
  const endsAtMs = performance.now() + deadlineMs
  const { id, texts } = question
  const body = writeGuardrailQuestion(question)
  const headers = {
    'content-type': 'application/json',
    accept: 'application/json',
    'accept-encoding': 'identity',
    'user-agent': 'gatehouse',
    ...(secret !== null && signWebhook({ id, sentAt: now(), body }, secret)),
  }
  for (let attempt = 1; ; attempt++) {
    const timeoutMs = Math.max(1, Math.ceil(endsAtMs - performance.now()))
    try {
      const answer = await send(guardrail, { headers, body, timeoutMs }, signal)
      return readReply(
        bodyOf(answer),
        texts.map(({ text }) => text),
      )
    } catch (error) {
      if (signal.aborted || !(error instanceof GuardrailFailure)) throw error
      if (attempt >= attemptsMax || error.problem !== 'unreachable')
        return { kind: 'failed', failure: error }
    }
  }
}

/** It refuses this gateway, or what this gateway sends: trying again does not help. */
const refusals: ReadonlySet<number> = new Set([400, 401, 403])

function bodyOf({ status, body }: Awaited<ReturnType<SendQuestion>>): string {
  if (refusals.has(status))
    throw new GuardrailFailure(
      'misconfigured',
      `The guardrail refused the question with ${status}.`,
    )
  if (status !== 200) throw new GuardrailFailure('status', `The guardrail answered ${status}.`)
  if (body === null)
    throw new GuardrailFailure('too_large', 'The answer of the guardrail is too large.')
  return body
}
