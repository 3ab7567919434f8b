import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { FreeCaller } from '#access/free-tier/free-tier.ts'
import type { CallerFormat } from '#formats/format.ts'
import type { Principal } from '#http/principal.ts'
import type { CountedQuotas } from '#limits/quotas/counted-quotas.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { RequestLine } from '#platform/log.ts'
import type { Pinned } from '#policies-in-force/in-force.ts'

import type { CallTarget } from './configured/call-target.ts'
import type { PolicySubject } from './configured/policy-subject.ts'
import type { ParsedRequest } from './model-request.ts'

/** One inference call on its way through the pipeline. */
export type InferenceCall = {
  requestId: string
  /** When its request arrived, on the clock of `performance.now()`. */
  arrivedAtMs: number
  endpoint: Endpoint
  principal: Principal
  /** The anonymous caller whose one free request this is; null for all others. */
  freeCaller: FreeCaller | null
  target: CallTarget
  format: CallerFormat
  /** The policies that apply to it, from its first to its last byte. */
  policies: Pinned
  policySubject: PolicySubject
  parsed: ParsedRequest
  /** Headers of the caller's request that are passed on to an upstream of the same format. */
  headers: Record<string, string>
  /** Cancelled when the caller hangs up, or when this process ends all calls. */
  cancellation: Cancellation
  /** Cancelled only when this process ends all calls. */
  ending: Cancellation
  /** Called when its limits and credits are decided. */
  onDecided(): void
  /** Adds headers to the answer, also if that is an error. */
  addHeaders(headers: Record<string, string>): void
  /** The quotas and budgets that the call counts in; null until it is admitted, or if there are none. */
  counted: CountedQuotas | null
  /** The call's line in the log. */
  line: RequestLine
}
