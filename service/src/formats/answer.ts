import type { ApiError } from '#platform/api-error.ts'

import type { UpstreamFormatName } from './format-name.ts'
import type { RawFrame } from './framing.ts'
import type { OpaqueState } from './turn.ts'

/**
 * An event of an answer while a model writes it. An answer is `started`, then blocks, then `finished`: each of
 * the two exactly once. Blocks are numbered from 0 in the order in which they start; each starts once, gets
 * its deltas while it is open, and ends once. Blocks may overlap: a writer whose format does not allow that
 * holds the later ones back.
 */
export type AnswerEvent =
  | {
      type: 'started'
      id: string
      model: string
      /** As far as it is known at the start. */ usage: Usage
      /** No model reads the request, so that nothing is estimated. */
      isUnread?: boolean
    }
  | { type: 'block_started'; index: number; block: Block }
  /** More text of the block: prose, reasoning, a refusal, or a part of the JSON of arguments. */
  | { type: 'block_delta'; index: number; text: string }
  /** Only in a reasoning block, at most once, after its last delta. */
  | { type: 'block_sealed'; index: number; opaque: OpaqueState }
  /** `isCut`: the model has not ended it. */
  | { type: 'block_ended'; index: number; isCut?: boolean }
  | { type: 'finished'; reason: StopReason; stopSequence: string | null; usage: Usage }

export type Block =
  | { type: 'text' }
  | { type: 'reasoning' }
  | { type: 'refusal' }
  | { type: 'tool_call'; id: string; name: string }

export type StopReason =
  | 'end'
  | 'max_tokens'
  | 'stop_sequence'
  | 'tool_call'
  | 'refusal'
  | 'content_filter'
  | 'pause'

/** Counts of tokens. `inputTokens` includes cached tokens. */
export type Usage = {
  inputTokens: number
  outputTokens: number
  cachedInputTokens: number
  cacheWriteTokens: number
  reasoningTokens: number
  /** Those of `cacheWriteTokens` that are cached for an hour, where the upstream reports it. */
  cacheWriteHourTokens?: number
  /** Web searches of the provider, where it reports them. */
  webSearches?: number
}

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
}

/** A frame on its way through the pipeline: what the upstream sent, and the events it stands for. */
export type Frame = {
  events: readonly AnswerEvent[]
  source: SourceFrame
  /** The usage in this frame, as the upstream wrote it. */
  reportedUsage?: Json | undefined
  /** Whether it carries audio or an image, whose tokens cannot be counted here. */
  hasMedia?: boolean
  /** It is the frame before with another text in its one delta; its JSON is parsed only when it is read. */
  isRepeated?: boolean
}

/** The frames of an answer that arrived together, in the upstream's format. */
export type Piece = {
  format: UpstreamFormatName
  frames: readonly Frame[]
  /** The upstream was asked for a plain answer, and its body is the only frame. */
  isPlain?: boolean
  /** Only the events count, also for a caller who speaks the upstream's format. The same for all pieces of an answer. */
  isRebuilt?: boolean
}

/** Takes the next piece of an answer; returns whether the one after it is wanted now. It must not throw. */
export type TakePiece = (piece: Piece) => boolean

/** Pieces that can be taken where they arrive, without waking code that awaits each of them. */
export type PieceSource = AsyncIterable<Piece> & {
  /** Resolves when no more are wanted for now, to whether the answer is over. */
  readWhile(take: TakePiece): Promise<boolean>
}

/** A frame as the upstream sent it, with its JSON parsed once. */
export type SourceFrame = RawFrame & { json: Json }

export type Json = Record<string, unknown>

/** The cost of a call. `remainingCredits` is null where no balance is known. */
export type Receipt = {
  remainingCredits: number | null
  creditsUsed: number
  costUsd: number
  /** Counted here, because the upstream reported nothing believable; null: its own report stands. */
  usage: Usage | null
}

/** A frame for the caller. `bytes` are the upstream's own, where nothing was changed. */
export type OutFrame = {
  /** The name on the `event:` line; null where the format has none. */
  event: string | null
  data: Json | '[DONE]'
  bytes: Buffer | null
}

/**
 * Writes an answer in a caller's format, frame by frame. The last call is `close`, when the bill is settled, for
 * the frames that carry the receipt; or `fail`, when the answer ends in the middle.
 */
export type Writer = {
  write(frame: Frame): OutFrame[]
  close(receipt: Receipt): OutFrame[]
  fail(error: ApiError): OutFrame[]
}

/** Reads an upstream's format, frame by frame. */
export type Reader = {
  /**
   * Throws `BrokenAnswer` for a frame that makes no sense, and `ApiError` for one that reports a failure of the
   * model. At the end of a stream that is not finished it gets one more frame, whose data is `[DONE]`.
   */
  read(frame: SourceFrame): AnswerEvent[]
  /** True after `finished`: further frames are ignored. */
  isFinished(): boolean
  /**
   * Whether the last frame with another text would have been another delta of the same block, and nothing else.
   * `delta` is the only event of that frame. Absent: never.
   */
  isRepeatable?(delta: AnswerEvent & { type: 'block_delta' }): boolean
}
