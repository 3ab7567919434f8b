import type { Json } from '#formats/answer.ts'
import type { Turn } from '#formats/turn.ts'
import type { ApiError } from '#platform/api-error.ts'

import type { TurnCount } from './count/count-turn.ts'
import type { CatalogueModel } from './upstreams/catalogue.ts'

/** What a caller asks of a model. */
export type ModelRequest = {
  /** The body as it was sent, or as it was redacted. */
  body: Json
  turn: Turn
  model: CatalogueModel
  /** As the caller named it. */
  modelName: string
  isStreamed: boolean
  /** The local estimate of what is sent. */
  estimate: TurnCount
  /** Whether the provider may add input that the gateway never sees. */
  hasUnseenInput: boolean
  maxOutputTokens: number
  /** The most web searches that the provider may make. */
  webSearchesMax: number
  /** Web searches that are charged although no answer reports them. */
  webSearchesMin: number
}

/** The request that was read from a body, or the error. The error is thrown only after the attempt has been counted. */
export type ParsedRequest = { ok: true; request: ModelRequest } | { ok: false; error: ApiError }

export function requireRequest(parsed: ParsedRequest): ModelRequest {
  if (parsed.ok) return parsed.request
  throw parsed.error
}

/** The input tokens that are charged if the upstream reports none. */
export const billedInput = ({ estimate }: Pick<ModelRequest, 'estimate'>): number =>
  estimate.billedTokens ?? estimate.tokens
