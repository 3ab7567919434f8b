import { BrokenAnswer } from './broken-answer.ts'
import type { FrameParser, Framing, RawFrame } from './framing.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])
const nothing = Buffer.alloc(0)

/**
 * Cuts a stream of server-sent events into frames. Chunks may end inside a character, a line or a line end. The
 * bytes of all frames together are the bytes of the stream. Time and memory are linear in the bytes, however large a
 * frame, however small the chunks, and whatever the line ends.
 */
class SseParser implements FrameParser {
  readonly #frameMaxBytes: number
  readonly #pending = new GrowingBuffer()
  #isFirst = true
  #isLineEmpty = true
  /** The last byte was a CR, so a LF may belong to it. */
  #isAfterCr = false
  /** The last line was empty: it ends a frame. */
  #endsFrame = false
  /** The next LF and the next CR in the chunk; its length if there is none. Each is searched for once. */
  #nextLf = 0
  #nextCr = 0

  constructor(frameMaxBytes: number) {
    this.#frameMaxBytes = frameMaxBytes
  }

  feed(chunk: Buffer): RawFrame[] {
    let frames: RawFrame[] | undefined
    if (chunk.length === 0) return []
    this.#nextLf = -1
    this.#nextCr = -1
    let start = 0
    for (let end = this.#endLine(chunk, 0); end !== -1; end = this.#endLine(chunk, end)) {
      if (!this.#endsFrame) continue
      const isWhole = start === 0 && end === chunk.length
      const frame = this.#takeFrame(isWhole ? chunk : chunk.subarray(start, end))
      // Many chunks are one frame: a list of one takes less than one that may grow.
      if (frames) frames.push(frame)
      else frames = [frame]
      start = end
    }
    if (start < chunk.length) this.#keep(start === 0 ? chunk : chunk.subarray(start))
    return frames ?? []
  }

  /** Some servers leave out the last empty line. */
  end(): RawFrame[] {
    return this.#pending.length > 0 ? [this.#takeFrame(nothing)] : []
  }

  /** The position after the next line; -1 if it does not end in this chunk. */
  #endLine(chunk: Buffer, from: number): number {
    if (this.#isAfterCr) {
      this.#isAfterCr = false
      return chunk[from] === lineFeed ? from + 1 : from
    }
    const lineEnd = this.#findLineEnd(chunk, from)
    if (lineEnd === chunk.length) {
      this.#isLineEmpty &&= from === lineEnd
      return -1
    }
    this.#endsFrame = this.#isLineEmpty && lineEnd === from
    this.#isLineEmpty = true
    if (lineEnd !== this.#nextCr) return lineEnd + 1
    this.#isAfterCr = true
    return lineEnd + 1 === chunk.length ? -1 : this.#endLine(chunk, lineEnd + 1)
  }

  #findLineEnd(chunk: Buffer, from: number): number {
    if (this.#nextLf < from) this.#nextLf = indexOrLength(chunk, lineFeed, from)
    if (this.#nextCr < from) this.#nextCr = indexOrLength(chunk, carriageReturn, from)
    return Math.min(this.#nextLf, this.#nextCr)
  }

  #keep(bytes: Buffer) {
    if (this.#pending.length + bytes.length > this.#frameMaxBytes) {
      throw new BrokenAnswer(`A frame is larger than ${this.#frameMaxBytes} bytes.`)
    }
    this.#pending.append(bytes)
  }

  #takeFrame(rest: Buffer): RawFrame {
    const bytes = this.#pending.takeWith(rest)
    const hasMark = this.#isFirst && bytes.subarray(0, 3).equals(byteOrderMark)
    this.#isFirst = false
    return readFrame(bytes, hasMark ? bytes.toString('utf8', 3) : bytes.toString())
  }
}

export const createSseParser = (limits: { frameMaxBytes: number }): FrameParser =>
  new SseParser(limits.frameMaxBytes)

export const serverSentEvents: Framing = {
  mediaType: 'text/event-stream',
  createParser: createSseParser,
}

function indexOrLength(chunk: Buffer, byte: number, from: number): number {
  const index = chunk.indexOf(byte, from)
  return index === -1 ? chunk.length : index
}

/** The start of a frame that has not ended, in one buffer: a list of chunks would take 200 bytes for each of one byte. */
class GrowingBuffer {
  length = 0
  #bytes = nothing

  append(bytes: Buffer) {
    const length = this.length + bytes.length
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.max(256, 2 * length))
      this.#bytes.copy(larger, 0, 0, this.length)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.length)
    this.length = length
  }

  /** What was appended, followed by `rest`. Empties the buffer. */
  takeWith(rest: Buffer): Buffer {
    if (this.length === 0) return rest
    const bytes = Buffer.concat([this.#bytes.subarray(0, this.length), rest])
    this.#bytes = nothing
    this.length = 0
    return bytes
  }
}

function readFrame(bytes: Buffer, text: string): RawFrame {
  let event = ''
  let data = ''
  let hasData = false
  const lines = text.includes('\r') ? text.replaceAll(/\r\n?/g, '\n') : text
  for (let start = 0, end = 0; start < lines.length; start = end + 1) {
    end = lines.indexOf('\n', start)
    if (end === -1) end = lines.length
    if (lines.startsWith('data:', start)) {
      const value = lines.slice(lines[start + 5] === ' ' ? start + 6 : start + 5, end)
      data = hasData ? `${data}\n${value}` : value
      hasData = true
    } else if (lines.startsWith('event:', start)) {
      event = lines.slice(lines[start + 6] === ' ' ? start + 7 : start + 6, end)
    }
  }
  return { event, data, bytes }
}

type SentFrame = { event: string | null; data: object | '[DONE]'; bytes: Buffer | null }

/** A frame as it is sent; a frame that has bytes keeps them, and its data is not read. */
export function toSse(frame: SentFrame): Buffer | string {
  if (frame.bytes) return frame.bytes
  const { event, data } = frame
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return event === null ? `data: ${text}\n\n` : `event: ${event}\ndata: ${text}\n\n`
}
