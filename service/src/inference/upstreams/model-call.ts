import type { Json, Piece } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import type { Turn } from '#formats/turn.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'

import type { CatalogueModel } from './catalogue.ts'

/** A call to a model, as needed to ask its upstreams. */
export type ModelCall = {
  organizationId: string
  model: CatalogueModel
  /** Null if no caller has sent the request, so that there is only the turn. */
  callerFormat: CallerFormatName | null
  /** The caller's own request, which is sent to an upstream of the same format. */
  body: Json
  turn: Turn
  maxOutputTokens: number
  /** Headers of the caller's request that are passed on to an upstream of the same format. */
  headers: Record<string, string>
  /** Whether upstreams may be asked for a plain answer. */
  isPlain: boolean
  cancellation: Cancellation
  /** Cancelled only when this process ends all calls. */
  ending: Cancellation
  /** Called before each attempt, with the members of the request that its upstream does not get. */
  onAttempt(removed: readonly string[]): void
  /** Called once, before the first piece. */
  onAnswering(upstream: string): void
  onPiece(piece: Piece): void
  /** Called when a plain answer is given up before it has arrived: the model may have written something that was never seen. */
  onUnseen(upstream: string): void
}
