import { fstatSync, write } from 'node:fs'

const bufferMaxBytes = 4 * 1024 * 1024

type Done = (error?: Error | null) => void

/** The part of a stream that lines are written to. */
type LineStream = {
  readonly writable: boolean
  /** How much is not written yet. */
  readonly writableLength: number
  write(text: string, done: Done): unknown
  on(event: 'error', listener: () => void): unknown
}

type Options = { onDropped?: (lines: number) => void; maxBytes?: number }

/**
 * Writes lines to a stream whose reader may stop reading. What the reader has not read is buffered up to a limit;
 * lines beyond it are dropped, and the next line that fits is preceded by one that says how many.
 */
export function createBoundedOutput(stream: LineStream, options: Options = {}) {
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
export async function untilWritten(
  stream: Pick<LineStream, 'writable' | 'writableLength'>,
  maxMs: number,
): Promise<void> {
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

const standardOutputFd = 1
/** How long a line waits for others that are written with it. */
const gatherMs = 20

/** Gathers lines for a few milliseconds and writes them together, one write at a time. */
export function createGatheringStream(writeAll: (text: string, done: Done) => void): LineStream {
  let gathered = ''
  let waiting: Done[] = []
  let writingLength = 0
  let isBusy = false

  function flush() {
    const text = gathered
    const written = waiting
    gathered = ''
    waiting = []
    writingLength = text.length
    writeAll(text, (error) => {
      writingLength = 0
      isBusy = false
      for (const done of written) done(error)
      if (gathered !== '') schedule()
    })
  }

  function schedule() {
    if (isBusy) return
    isBusy = true
    setTimeout(flush, gatherMs)
  }

  return {
    writable: true,
    get writableLength() {
      return gathered.length + writingLength
    },
    write(text, done) {
      gathered += text
      waiting.push(done)
      schedule()
    },
    on: () => undefined, // every failure is reported to `done`
  }
}

let opened: LineStream | undefined

/**
 * Standard output, without a write that the process waits for. Node writes to files and terminals synchronously, so theirs
 * are left to a thread. Its writes to pipes and sockets do not block; a thread would, as long as no one reads.
 */
export const standardOutput = (): LineStream =>
  (opened ??= createGatheringStream(canBlockThread() ? writeToPipe() : writeInThread))

function canBlockThread(): boolean {
  const output = fstatSync(standardOutputFd)
  return output.isFIFO() || output.isSocket()
}

function writeToPipe() {
  process.stdout.on('error', () => undefined) // reported to `done` as well
  return function writeRest(text: string, done: Done) {
    const end = endOfPiece(text)
    process.stdout.write(text.slice(0, end), (error) => {
      if (error || end === text.length) done(error)
      else writeRest(text.slice(end), done)
    })
  }
}

/** So much is written to a pipe at once or not at all, so it is not mixed with lines of others that write to the same pipe. */
const pipeMaxBytes = 4096

/** The end of the first lines that fit into one such write; that of the first line if it is longer. */
export function endOfPiece(text: string): number {
  let end = text.length > pipeMaxBytes ? text.lastIndexOf('\n', pipeMaxBytes - 1) + 1 : text.length
  while (end > 0 && Buffer.byteLength(text.slice(0, end)) > pipeMaxBytes) {
    end = text.lastIndexOf('\n', end - 2) + 1
  }
  return end > 0 ? end : text.indexOf('\n') + 1 || text.length
}

function writeInThread(text: string, done: Done) {
  const bytes = Buffer.from(text)
  const writeFrom = (start: number) =>
    write(standardOutputFd, bytes, start, (error, written) => {
      if (error || start + written >= bytes.length) done(error)
      else writeFrom(start + written)
    })
  writeFrom(0)
}
