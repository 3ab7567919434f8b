import { BrokenAnswer } from './broken-answer.ts'
import type { FrameParser, Framing, RawFrame } from './framing.ts'

const lineFeed = 0x0a
const carriageReturn = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Cuts a stream of server-sent events into frames. Chunks may end inside a character, a line or a line end. The
 * bytes of all frames together are the bytes of the stream. Time and memory are linear in the bytes, however large a
 * frame, however small the chunks, and whatever the line ends.
 */
export function createSseParser({ frameMaxBytes }: { frameMaxBytes: number }): FrameParser {
  const pending = createGrowingBuffer()
  const lineEnds = createLineEndFinder()
  let isFirst = true
  let isLineEmpty = true
  /** The last byte was a CR, so a LF may belong to it; `endsFrame`: the line it ended was empty. */
  let afterCr: { endsFrame: boolean } | null = null

  function keep(bytes: Buffer) {
    if (pending.length() + bytes.length > frameMaxBytes) {
      throw new BrokenAnswer(`A frame is larger than ${frameMaxBytes} bytes.`)
    }
    pending.append(bytes)
  }

  function takeFrame(rest: Buffer): RawFrame {
    const frame = readFrame(pending.takeWith(rest), isFirst)
    isFirst = false
    return frame
  }

  /** The next line end in `chunk`: the position after it, and whether it ends a frame. Undefined: there is none. */
  function nextLine(chunk: Buffer, from: number): { end: number; endsFrame: boolean } | undefined {
    if (afterCr) {
      const { endsFrame } = afterCr
      afterCr = null
      return { end: chunk[from] === lineFeed ? from + 1 : from, endsFrame }
    }
    const lineEnd = lineEnds.find(chunk, from)
    if (lineEnd === -1) {
      isLineEmpty &&= from === chunk.length
      return undefined
    }
    const endsFrame = isLineEmpty && lineEnd === from
    isLineEmpty = true
    if (chunk[lineEnd] === carriageReturn) {
      afterCr = { endsFrame }
      return lineEnd + 1 === chunk.length ? undefined : nextLine(chunk, lineEnd + 1)
    }
    return { end: lineEnd + 1, endsFrame }
  }

  return {
    feed(chunk: Buffer): RawFrame[] {
      const frames: RawFrame[] = []
      let start = 0
      lineEnds.startChunk()
      if (chunk.length === 0) return frames
      for (let line = nextLine(chunk, 0); line; line = nextLine(chunk, line.end)) {
        if (!line.endsFrame) continue
        frames.push(takeFrame(chunk.subarray(start, line.end)))
        start = line.end
      }
      if (start < chunk.length) keep(chunk.subarray(start))
      return frames
    },
    // Some servers leave out the last empty line.
    end(): RawFrame[] {
      return pending.length() > 0 ? [takeFrame(Buffer.alloc(0))] : []
    },
  }
}

export const serverSentEvents: Framing = {
  mediaType: 'text/event-stream',
  createParser: createSseParser,
}

/** Finds line ends in a chunk from left to right. Each LF is searched once: searching for it at every CR would be quadratic. */
function createLineEndFinder() {
  /** The position of the next LF in the chunk; its length if there is none. */
  let nextLf = -1
  return {
    startChunk: () => void (nextLf = -1),
    /** -1 if there is none. */
    find(chunk: Buffer, from: number): number {
      if (nextLf < from) nextLf = chunk.indexOf(lineFeed, from)
      if (nextLf === -1) nextLf = chunk.length
      const cr = chunk.subarray(from, nextLf).indexOf(carriageReturn)
      if (cr !== -1) return from + cr
      return nextLf === chunk.length ? -1 : nextLf
    },
  }
}

/** The start of a frame that has not ended, in one buffer: a list of chunks would take 200 bytes for each of one byte. */
function createGrowingBuffer() {
  let buffer = Buffer.alloc(0)
  let used = 0
  return {
    length: () => used,
    append(bytes: Buffer) {
      if (used + bytes.length > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.max(256, 2 * (used + bytes.length)))
        buffer.copy(larger, 0, 0, used)
        buffer = larger
      }
      bytes.copy(buffer, used)
      used += bytes.length
    },
    /** What was appended, followed by `rest`. Empties the buffer. */
    takeWith(rest: Buffer): Buffer {
      if (used === 0) return rest
      const bytes = Buffer.concat([buffer.subarray(0, used), rest])
      buffer = Buffer.alloc(0)
      used = 0
      return bytes
    },
  }
}

function readFrame(bytes: Buffer, mayHaveMark: boolean): RawFrame {
  const hasMark = mayHaveMark && bytes.subarray(0, 3).equals(byteOrderMark)
  const text = bytes.toString('utf8', hasMark ? 3 : 0)
  const hasCr = bytes.includes(carriageReturn)
  let event = ''
  let data = ''
  let hasData = false
  for (const line of hasCr ? text.split(/\r\n|\n|\r/) : text.split('\n')) {
    if (line.startsWith('data:')) {
      const value = line.slice(line[5] === ' ' ? 6 : 5)
      data = hasData ? `${data}\n${value}` : value
      hasData = true
    } else if (line.startsWith('event:')) {
      event = line.slice(line[6] === ' ' ? 7 : 6)
    }
  }
  return { event, data, bytes }
}

/** A frame as it is sent; a frame that has bytes keeps them. */
export function toSse({
  event,
  data,
  bytes,
}: {
  event: string | null
  data: object | '[DONE]'
  bytes: Buffer | null
}): Buffer | string {
  if (bytes) return bytes
  const text = typeof data === 'string' ? data : JSON.stringify(data)
  return event === null ? `data: ${text}\n\n` : `event: ${event}\ndata: ${text}\n\n`
}
