import type { Writable } from 'node:stream'

const bufferMaxBytes = 4 * 1024 * 1024

type Options = { onDropped?: (lines: number) => void; maxBytes?: number }

/**
 * Writes lines to a stream whose reader may stop reading. What the reader has not read is buffered up to a limit;
 * lines beyond it are dropped, and the next line that fits is preceded by one that says how many.
 */
export function createBoundedOutput(stream: Writable, options: Options = {}) {
  const { onDropped = () => undefined, maxBytes = bufferMaxBytes } = options
  let dropped = 0
  // Failures are counted line by line: a full disk may have room again. An unhandled event would end the process.
  stream.on('error', () => undefined)

  function drop(lines: number) {
    dropped += lines
    onDropped(lines)
  }
  const send = (line: string, lines: number) =>
    stream.write(line, (error) => {
      if (error) drop(lines)
    })

  return {
    write(line: string) {
      if (stream.writableLength + line.length > maxBytes) return drop(1)
      const before = dropped
      dropped = 0
      if (before > 0) stream.write(describeDropped(before), (error) => error && (dropped += before))
      send(line, 1)
    },
  }
}

/** Resolves when everything has been written, or after `maxMs`. */
export async function untilWritten(stream: Writable, maxMs: number): Promise<void> {
  const timeout = AbortSignal.timeout(maxMs)
  while (stream.writable && stream.writableLength > 0 && !timeout.aborted) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

/** In the form of the other lines of the log. */
const describeDropped = (lines: number) => {
  const time = new Date().toISOString()
  return `${JSON.stringify({ level: 50, time, event: 'log_lines_dropped', lines })}\n`
}
