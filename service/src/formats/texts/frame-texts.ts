import type { Frame, Json } from '#formats/answer.ts'

import type { TextView } from './text-views.ts'

/** A text in a frame of an answer. */
export type FrameText = {
  /** The text of which this is a part: a block, a part of a message, a string in the arguments of a call. */
  channel: string
  text: string
  /**
   * A delta is appended to its channel. A whole text is all of its channel: it repeats what the deltas said, and may
   * go on where they ended.
   */
  kind: 'delta' | 'whole'
  /** What is new in the text, in other readings. */
  views?: readonly TextView[]
}

export type FrameTexts = {
  texts: readonly FrameText[]
  /** Channels, and other readings, that get no more text after this frame. */
  ended: readonly string[]
  /** Whether the frame has content that no rule can read: encrypted or binary data. */
  hasUnreadable: boolean
}

/** Finds the texts in one answer. Nothing that a client could show or act on is left out. */
export type TextReader = {
  /** The texts of the next frame of a stream. */
  read(frame: Frame): FrameTexts
  /**
   * The channel to which the next frame adds its text as it is, if it repeats the last one with another text. Undefined where such a
   * frame has to be read by itself.
   */
  readonly repeatedChannel?: string | undefined
  /** The texts of repeated frames that follow each other, read as one. */
  readRepeated?(text: string): FrameTexts
  /** The texts of a plain answer. */
  readPlain(body: Json): FrameTexts
}
