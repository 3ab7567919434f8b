import type { Dialect } from '@gatehouse/contract/error-body'

import type { Json, OutFrame, Reader, Writer } from './answer.ts'
import type { ProtocolName, Turn } from './turn.ts'

/** What a writer needs to know about the call it answers. */
export type Answering = {
  requestId: string
  /** The model as the caller named it. */
  model: string
  createdAt: Date
  /** The caller's request, as it was sent. */
  request: Json
}

/**
 * One wire format, as callers and as upstreams speak it. Between equal formats the caller's request and
 * the upstream's frames travel as they are (`forwardRequest`, `createPassThrough`); between different
 * ones they are rebuilt through `Turn` and `AnswerEvent`.
 */
export type Protocol = {
  name: ProtocolName

  /** A caller's request, already valid by its schema, as a turn. Throws ApiError where it makes no sense. */
  readTurn(request: Json): Turn
  /** Rebuilds an answer in this format. */
  createWriter(answering: Answering): Writer
  /** Hands on an answer that already is in this format. Only what carries the receipt is changed. */
  createPassThrough(answering: Answering): Writer
  /** What keeps a connection alive while nothing else is to be said. */
  ping: string
  /** All frames of a finished stream as the body of a plain answer. */
  fold(frames: readonly OutFrame[]): Json

  /** Where upstreams of this format listen, below their base address, which ends in /v1. */
  path: `/${string}`
  /** What every request in this format says in its head. */
  headers: Readonly<Record<string, string>>
  /** The family of errors whose bodies are those of an upstream of this format; null: there is none. */
  errorDialect: Dialect | null
  /** A turn as a request for a streamed answer. */
  writeRequest(turn: Turn, upstream: UpstreamModel): Json
  /** The caller's own request for an upstream of the same format. Asks for a streamed answer. */
  forwardRequest(request: Json, upstream: UpstreamModel): Json
  createReader(): Reader
  /** What an upstream says in the body of a refusal, for people; null when it says nothing readable. */
  readError(body: Json): UpstreamComplaint | null
}

export type UpstreamModel = {
  /** The upstream's own name for the model. */
  model: string
  /** The most it may write: always said, because limits and holds rely on it. */
  maxOutputTokens: number
  /** The name of that bound in Chat Completions: older servers know only `max_tokens`. */
  outputLimitMember: 'max_completion_tokens' | 'max_tokens'
}

export type UpstreamComplaint = { message: string; type: string | null; code: string | null }
