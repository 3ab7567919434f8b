/** One frame of a stream, with the very bytes it came in. */
export type RawFrame = {
  /** The name on the `event:` line; '' where there is none. */
  event: string
  /** The text of the frame; '' for a comment. */
  data: string
  bytes: Buffer
}

/** Cuts the bytes of a stream into frames, whatever the chunks they arrive in. */
export type FrameParser = {
  feed(chunk: Buffer): RawFrame[]
  /** The stream is over: the frames that had begun and not ended. */
  end(): RawFrame[]
}

/** How the answers of an upstream are divided into frames. */
export type Framing = {
  /** The `content-type` of such an answer, without parameters. */
  mediaType: string
  /** The parser throws `BrokenAnswer` when a frame has more bytes. */
  createParser(limits: { frameMaxBytes: number }): FrameParser
}
