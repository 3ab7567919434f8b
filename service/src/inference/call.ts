import type { Endpoint } from '@gatehouse/contract/endpoint'

import type { FreeCaller } from '#access/free-tier.ts'
import type { Principal } from '#http/principal.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { RequestLine } from '#platform/log.ts'
import type { Pinned } from '#policy-gateway/in-force.ts'

import type { Json } from './answer.ts'
import type { TurnCount } from './count/count-turn.ts'
import type { Protocol } from './protocol.ts'
import type { Turn } from './turn.ts'
import type { CatalogueModel } from './upstreams/catalogue.ts'

/** One inference call on its way through the pipeline. */
export type Call = {
  requestId: string
  endpoint: Endpoint
  principal: Principal
  /** Set for somebody anonymous: whose one free request this is. */
  freeCaller: FreeCaller | null
  /** The caller's format. */
  protocol: Protocol
  /** What it is judged by, from its first to its last byte. */
  policies: Pinned
  /** What is asked; or why it cannot be, which is told only after the attempt was counted (G8.3). */
  asked: Asked | ApiError
  /** Headers of the caller's that an upstream of the same format understands. */
  headers: Record<string, string>
  /** Aborts when the caller hangs up, or the call takes too long. */
  signal: AbortSignal
  /** Adds headers to the answer, whatever it will be. */
  addHeaders(headers: Record<string, string>): void
  /** What the log will say. */
  line: RequestLine
}

export type Asked = {
  /** The body as it was sent. */
  request: Json
  turn: Turn
  model: CatalogueModel
  /** As the caller named it. */
  modelName: string
  isStreamed: boolean
  /** The local estimate of what is sent. */
  estimate: TurnCount
  maxOutputTokens: number
}
