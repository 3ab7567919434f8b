import type { Dialect } from '@gatehouse/contract/error-body'

import type { Frame, Json, OutFrame, Reader, Receipt, SourceFrame, Writer } from './answer.ts'
import type { CallerFormatName, UpstreamFormatName } from './format-name.ts'
import type { Framing } from './framing.ts'
import type { TextReader } from './texts/frame-texts.ts'
import type { Turn } from './turn.ts'

// A call has two formats: the one its caller speaks and the one its upstream speaks. Where both are the same,
// the request and the answer travel as they are (`forwardRequest`, `createPassThrough`, `settlePlain`). Where
// they differ, both are rebuilt through `Turn` and `AnswerEvent`. Messages, Responses and Chat Completions are
// both; a format that only upstreams speak is one folder with an `UpstreamFormat` and one entry in formats.ts.

/** What a writer needs to know about the call it answers. */
export type Answering = {
  requestId: string
  /** The model as the caller named it. */
  model: string
  createdAt: Date
  /** The estimate of what the model reads, until the upstream reports its own figure. */
  inputTokens: number
  /** The caller's request, as it was sent. */
  request: Json
  /** A failed stream of Responses also has the event at which OpenAI's own clients throw an error. */
  hasErrorEvent?: boolean
}

/** A wire format as callers speak it. */
export type CallerFormat = {
  name: CallerFormatName
  /** The family of errors that its callers expect. */
  errorDialect: Dialect
  /** The headers of a request that an upstream of the same format gets too, in lower case. */
  forwardedHeaders: readonly string[]
  /** Reads a request that is valid by its schema. Throws `ApiError` where it makes no sense. */
  readTurn(request: Json): Turn
  /** Rebuilds an answer in this format. */
  createWriter(answering: Answering): Writer
  /** Passes on an answer that already is in this format. Only the frame with the receipt is changed. */
  createPassThrough(answering: Answering): Writer
  /** Keeps a silent connection alive. */
  ping: string
  /** All frames of a finished stream as the body of a plain answer. */
  fold(frames: readonly OutFrame[]): Json
  /** The text of a plain answer that already is in this format, with the receipt. */
  settlePlain(body: SourceFrame, receipt: Receipt): string
}

/** A wire format as upstreams speak it. */
export type UpstreamFormat = {
  name: UpstreamFormatName
  /** Where requests for a model go, below the base address of the upstream. */
  pathOf(model: string): `/${string}`
  /** The headers that carry the upstream's key. */
  authorize(secret: string): Readonly<Record<string, string>>
  /** The headers of every request in this format. */
  headers: Readonly<Record<string, string>>
  /** A turn as a request. */
  writeRequest(turn: Turn, upstream: UpstreamModel): Json
  /**
   * The caller's own request, changed to ask for the answer that is wanted. Only for a format that callers speak
   * too, under the same name.
   */
  forwardRequest?(request: Json, upstream: UpstreamModel): Json
  framing: Framing
  createReader(): Reader
  /**
   * Reads a plain answer, whose body is one frame. Throws what a reader throws. Absent for a format that only
   * streams.
   */
  readPlain?(body: SourceFrame): Frame
  /**
   * Finds every text of an answer, also those that have no event, so that rules can judge what is passed on. `before` is the
   * beginning of the answer, where the caller has written it.
   */
  createTextReader(before?: string): TextReader
  /** The usage in one frame of an answer, as the upstream wrote it; undefined where the frame has none. */
  usageIn(frame: Json): Json | undefined
  /** Whether a frame carries audio or an image; absent for a format that has neither. */
  hasMedia?(frame: Json): boolean
  /** What the body of a refusal says; null when it says nothing readable. */
  readError(body: Json): UpstreamComplaint | null
}

/** The formats that upstreams of this process may speak, by name. */
export type UpstreamFormats = ReadonlyMap<UpstreamFormatName, UpstreamFormat>

export type UpstreamModel = {
  /** The upstream's own name for the model. */
  model: string
  /** The most it may write: always sent, because limits and holds rely on it. */
  maxOutputTokens: number
  /** The name of that bound in Chat Completions: older servers know only `max_tokens`. */
  outputLimitMember: 'max_completion_tokens' | 'max_tokens'
  /** Asks for a plain answer; otherwise for a stream. */
  isPlain?: boolean
}

export type UpstreamComplaint = {
  message: string
  type: string | null
  code: string | null
  /** The member of the request that it names. */
  param?: string
}
