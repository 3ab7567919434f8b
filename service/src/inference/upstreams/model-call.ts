import type { Json, Piece } from '#formats/answer.ts'
import type { CallerFormatName } from '#formats/format-name.ts'
import type { Turn } from '#formats/turn.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'

import type { CatalogueModel } from './catalogue.ts'

/** A call to a model, as its upstreams are asked. */
export type ModelCall = {
  organizationId: string
  model: CatalogueModel
  /** Null: no caller has sent it, and there is only the turn. */
  callerFormat: CallerFormatName | null
  /** The caller's own request, which an upstream of the same format gets. */
  body: Json
  turn: Turn
  maxOutputTokens: number
  /** Headers of the caller's request that an upstream of the same format gets too. */
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
  /** Called when a plain answer is given up before it has come: what was written of it was never seen. */
  onUnseen(upstream: string): void
}
