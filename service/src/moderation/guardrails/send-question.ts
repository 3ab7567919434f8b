import { scorerOriginOf } from '#moderation/post-scorer.ts'
import { followSignal } from '#platform/calls/cancellation.ts'
import { EgressBlocked } from '#platform/egress-target.ts'
import { type Egress, EgressFailed } from '#platform/egress.ts'
import { type OriginPools, PoolFull } from '#platform/origin-pools.ts'

import { GuardrailFailure } from './guardrail-failure.ts'
import type { Guardrail } from './guardrail.ts'

type SentQuestion = {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  /** For everything, to the last byte of the answer. */
  readonly timeoutMs: number
}

/** Null: the answer is longer than is read. */
type GuardrailAnswer = { readonly status: number; readonly body: string | null }

/** Sends a question once; throws a GuardrailFailure, or the reason of the signal. */
export type SendQuestion = (
  guardrail: Guardrail,
  question: SentQuestion,
  signal: AbortSignal,
) => Promise<GuardrailAnswer>

/** An answer with as many and as long spans as it may have is longer, and no sensible one is. */
const answerMaxBytes = 256 * 1024

/** The ports that the webhooks of organizations may have, as those of export sinks of this kind. */
export const guardrailPorts = [443, 8443] as const

type Deps = {
  /** For guardrails of the operator: their addresses may be private, as those of scorers. */
  pools: Pick<OriginPools, 'collect'>
  /** For addresses that tenants choose. */
  egress: Pick<Egress, 'request'>
}

/** Asks guardrails of the operator and of organizations, each over the connections that are meant for them. */
export function createSendQuestion({ pools, egress }: Deps): SendQuestion {
  return async (guardrail, question, signal) => {
    signal.throwIfAborted()
    const endsAtMs = performance.now() + question.timeoutMs
    const send = guardrail.id === null ? sendByPools : sendByEgress
    try {
      return await send(guardrail, question, signal)
    } catch (error) {
      if (signal.aborted) throw signal.reason as Error
      throw toFailure(error, performance.now() >= endsAtMs)
    }
  }

  async function sendByPools(
    { url }: Guardrail,
    { headers, body, timeoutMs }: SentQuestion,
    signal: AbortSignal,
  ): Promise<GuardrailAnswer> {
    const { pathname, search } = new URL(url)
    using following = followSignal(signal)
    const answer = await pools.collect(
      scorerOriginOf({ baseUrl: url }),
      {
        method: 'POST',
        path: pathname + search,
        headers: { ...headers },
        body,
        cancellation: following.cancellation,
        timeoutMs,
        createTimeout: late,
        isSilent: true,
      },
      answerMaxBytes,
    )
    return { status: answer.status, body: answer.isComplete ? answer.body.toString() : null }
  }

  async function sendByEgress(
    { url }: Guardrail,
    { headers, body, timeoutMs }: SentQuestion,
    signal: AbortSignal,
  ): Promise<GuardrailAnswer> {
    try {
      const answer = await egress.request(url, {
        method: 'POST',
        headers,
        body,
        deadlineMs: timeoutMs,
        answerLimitBytes: answerMaxBytes,
        ports: guardrailPorts,
        signal,
      })
      return { status: answer.status, body: answer.body.toString() }
    } catch (error) {
      const status = error instanceof EgressFailed ? error.statusOfTooLarge : undefined
      if (status === undefined) throw error
      return { status, body: null }
    }
  }
}

const late = () => new GuardrailFailure('late', 'The guardrail did not answer in time.')

/** Errors of libraries may name addresses: only what is known to be harmless is passed on. */
function toFailure(error: unknown, isLate: boolean): GuardrailFailure {
  if (error instanceof GuardrailFailure) return error
  if (error instanceof EgressBlocked) return new GuardrailFailure('misconfigured', error.reason)
  if (error instanceof PoolFull)
    return new GuardrailFailure('overloaded', 'Too many questions to the guardrail are open.')
  if (isLate) return late()
  if (error instanceof EgressFailed) return new GuardrailFailure('unreachable', error.message)
  const { code = 'unknown' } = Object(error) as { code?: unknown }
  return new GuardrailFailure(
    'unreachable',
    `The guardrail could not be reached (${String(code)}).`,
    { cause: error },
  )
}
