import type { ApiError } from '#platform/api-error.ts'

import type { SseFrame } from './sse.ts'
import type { Opaque, ProtocolName } from './turn.ts'

/**
 * What a model says, as it says it. An answer is `started`, then blocks, then `finished`, exactly once
 * each and in this order. Blocks are numbered from 0 in the order in which they start; each starts once,
 * gets its deltas while it is open, and ends once. Blocks may overlap: a writer whose format does not
 * allow that keeps the later ones back.
 */
export type AnswerEvent =
  | { type: 'started'; id: string; model: string; /** What is known so far. */ usage: Usage }
  | { type: 'block_started'; index: number; block: Block }
  /** More text of the block: prose, reasoning, a refusal, or a piece of the JSON of arguments. */
  | { type: 'block_delta'; index: number; text: string }
  /** Of a reasoning block, at most once, after its last delta. */
  | { type: 'block_sealed'; index: number; opaque: Opaque }
  | { type: 'block_ended'; index: number }
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

/** Counts of tokens. `inputTokens` is everything that was read, cached or not. */
export type Usage = {
  inputTokens: number
  outputTokens: number
  cachedInputTokens: number
  cacheWriteTokens: number
  reasoningTokens: number
}

export const noUsage: Usage = {
  inputTokens: 0,
  outputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  reasoningTokens: 0,
}

/** What travels through the pipeline: what an upstream sent, and what it means. */
export type Frame = {
  events: readonly AnswerEvent[]
  source: SourceFrame
}

/** What has arrived of an answer at once, and the format it is in. */
export type Piece = { protocol: ProtocolName; frames: readonly Frame[] }

/** A frame as the upstream sent it, with its JSON read once. */
export type SourceFrame = SseFrame & { json: Json }

export type Json = Record<string, unknown>

/** What a call has cost (contract 4.10). `remainingCredits` is null where no balance is known. */
export type Receipt = {
  remainingCredits: number | null
  creditsUsed: number
  costUsd: number
  /** Counted here, because the upstream said nothing believable; null: what it said stands. */
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
 * Writes an answer in a caller's format, frame by frame. `close` comes last, when the bill is settled,
 * and writes what carries the receipt; or `fail`, when the answer ends in the middle.
 */
export type Writer = {
  write(frame: Frame): OutFrame[]
  close(receipt: Receipt): OutFrame[]
  fail(error: ApiError): OutFrame[]
}

/** Reads an upstream's format, frame by frame. */
export type Reader = {
  /** Throws `BrokenAnswer` when the frame makes no sense, and `ApiError` when it says that the model failed. */
  read(frame: SourceFrame): AnswerEvent[]
  /** Has the answer been finished, so that whatever follows is of no interest? */
  isFinished(): boolean
}
