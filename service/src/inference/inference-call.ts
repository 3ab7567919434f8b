import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { FreeCaller } from '#access/free-tier/free-tier.ts'
import type { CallerFormat } from '#formats/format.ts'
import type { Principal } from '#http/principal.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import type { RequestLine } from '#platform/log.ts'
import type { Pinned } from '#policy-gateway/in-force.ts'

import type { ParsedRequest } from './model-request.ts'

/** One inference call on its way through the pipeline. */
export type InferenceCall = {
  requestId: string
  endpoint: Endpoint
  principal: Principal
  /** Set for an anonymous caller: whose one free request this is. */
  freeCaller: FreeCaller | null
  format: CallerFormat
  /** The policies that judge it, from its first to its last byte. */
  policies: Pinned
  parsed: ParsedRequest
  /** Headers of the caller's request that an upstream of the same format gets too. */
  headers: Record<string, string>
  /** Cancelled when the caller hangs up, or when this process ends all calls. */
  cancellation: Cancellation
  /** Cancelled only when this process ends all calls. */
  ending: Cancellation
  /** Called when its limits and credits are decided. */
  onDecided(): void
  /** Adds headers to the answer, whatever it will be. */
  addHeaders(headers: Record<string, string>): void
  /** The call's line in the log. */
  line: RequestLine
}
