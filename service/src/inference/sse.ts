import { BrokenAnswer } from './broken-answer.ts'

/** One event of a stream, with the very bytes it came in. */
export type SseFrame = {
  /** The name on the `event:` line, '' when there is none. */
  event: string
  /** The `data:` lines, joined; '' for a comment. */
  data: string
  bytes: Buffer
}

const lineFeed = 0x0a
const carriageReturn = 0x0d
const byteOrderMark = Buffer.from([0xef, 0xbb, 0xbf])

/**
 * Cuts a stream of server-sent events into frames, whatever the pieces it arrives in: pieces may end
 * inside a character, a line or a line end. The bytes of all frames, put together, are the bytes that came.
 * Every byte is looked at once, however large a frame and however small the pieces.
 */
export function createSseParser({ frameMaxBytes }: { frameMaxBytes: number }) {
  /** What has come of a frame that has not ended. */
  let begun: Buffer[] = []
  let begunBytes = 0
  let isFirst = true
  let isLineEmpty = true
  /** The last byte was a CR, so a LF may belong to it; `endsFrame`: the line it ended was empty. */
  let afterCr: { endsFrame: boolean } | null = null

  function keep(bytes: Buffer) {
    begun.push(bytes)
    begunBytes += bytes.length
    if (begunBytes > frameMaxBytes) {
      throw new BrokenAnswer(`A frame is larger than ${frameMaxBytes} bytes.`)
    }
  }

  function takeFrame(rest: Buffer): SseFrame {
    const bytes = begun.length === 0 ? rest : Buffer.concat([...begun, rest])
    const frame = readFrame(bytes, isFirst)
    begun = []
    begunBytes = 0
    isFirst = false
    return frame
  }

  /** After the next line end in `chunk`: where it ends, and whether a frame does. Undefined: there is none. */
  function nextLine(chunk: Buffer, from: number): { end: number; endsFrame: boolean } | undefined {
    if (afterCr) {
      const { endsFrame } = afterCr
      afterCr = null
      return { end: chunk[from] === lineFeed ? from + 1 : from, endsFrame }
    }
    const lineEnd = findLineEnd(chunk, from)
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
    feed(chunk: Buffer): SseFrame[] {
      const frames: SseFrame[] = []
      let start = 0
      if (chunk.length === 0) return frames
      for (let line = nextLine(chunk, 0); line; line = nextLine(chunk, line.end)) {
        if (!line.endsFrame) continue
        frames.push(takeFrame(chunk.subarray(start, line.end)))
        start = line.end
      }
      if (start < chunk.length) keep(chunk.subarray(start))
      return frames
    },
    /** The stream is over. Some servers leave out the last empty line. */
    end(): SseFrame[] {
      return begun.length > 0 ? [takeFrame(Buffer.alloc(0))] : []
    },
  }
}

function findLineEnd(bytes: Buffer, from: number): number {
  const lf = bytes.indexOf(lineFeed, from)
  // Hardly anybody sends CR alone: look for one only before the next LF.
  const cr = bytes.subarray(from, lf === -1 ? bytes.length : lf).indexOf(carriageReturn)
  return cr === -1 ? lf : from + cr
}

function readFrame(bytes: Buffer, mayHaveMark: boolean): SseFrame {
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

/** A frame as it is written: what has bytes of its own keeps them. */
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
