import type { Json } from '#formats/answer.ts'
import { readRequestTexts, type RequestTexts } from '#formats/texts/request-texts.ts'
import { GuardrailFailure } from '#moderation/guardrails/guardrail-failure.ts'
import { type Asker, runInTurns } from '#platform/steps/steps.ts'

import type { CheckedCall, CheckedRequest } from './findings.ts'
import type { SentRequest } from './guardrails/check-request.ts'
import { type EstimateTokens, withBody } from './redaction/redact-call.ts'

type Options = {
  call: CheckedCall
  asker: Asker
  estimate: EstimateTokens
  /** Whether guardrails may still rewrite it. */
  mayGrow: boolean
}

/** The request of a call as it may be sent: another one where something was redacted, or rewritten by a guardrail. */
export class RequestToSend<Request extends CheckedRequest> implements SentRequest {
  request: Request
  texts: RequestTexts
  readonly #options: Options
  #growthMost: number

  constructor(request: Request, texts: RequestTexts, options: Options) {
    this.request = request
    this.texts = texts
    this.#options = options
    this.#growthMost = options.mayGrow ? growthOf(request) : 0
  }

  /** By how many tokens it may still become longer. */
  get growthMost(): number {
    return this.#growthMost
  }

  get body(): Json {
    return this.request.body
  }

  async replaceWith(body: Json) {
    const { call, asker, estimate } = this.#options
    const { request } = this
    const rewritten = await withBody({ call, request, body }, estimate)
    const growth = rewritten.estimate.tokens - request.estimate.tokens
    if (growth > this.#growthMost) throw tooLong()
    this.#growthMost -= growth
    this.request = rewritten
    this.texts = await runInTurns(readRequestTexts(rewritten.turn), asker)
  }
}

/** Placeholders are a little longer than what they stand for. */
const growthOf = ({ estimate }: CheckedRequest) => 256 + Math.ceil(estimate.tokens / 10)

const tooLong = () =>
  new GuardrailFailure(
    'unwritable',
    'The request would be longer, as the guardrail rewrites it, than credits are held for.',
  )
