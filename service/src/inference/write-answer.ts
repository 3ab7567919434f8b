import type { OutFrame, Piece, SourceFrame, Writer } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { Answering, CallerFormat } from '#formats/format.ts'
import { joinSse } from '#formats/join-sse.ts'
import type { EventStream } from '#http/event-stream.ts'
import type { ApiError } from '#platform/api-error.ts'
import type { Cancellation } from '#platform/calls/cancellation.ts'
import { type WheelDeadline, startDeadline } from '#platform/calls/timer-wheel.ts'
import { ClientGone } from '#platform/client-gone.ts'
import { toApiError } from '#platform/to-api-error.ts'

import type { AnswerPart } from './run-inference.ts'
import { answerTooLarge, plainMaxBytes, toFailure } from './upstreams/upstream-failure.ts'

type Parts = AsyncIterable<AnswerPart> & Pick<AsyncIterator<AnswerPart>, 'throw'>

/** Writes parts of an answer in the caller's format: passed on if they come in that format, else rebuilt. */
function createPartWriter(format: CallerFormat, answering: Answering) {
  let writer: Writer | undefined
  const writerFor = (piece: Pick<Piece, 'format' | 'isRebuilt'>) =>
    (writer ??=
      piece.format === format.name && !piece.isRebuilt
        ? format.createPassThrough(answering)
        : format.createWriter(answering))
  return {
    write(part: AnswerPart): OutFrame[] {
      if ('receipt' in part) return writerFor({ format: format.name }).close(part.receipt)
      const target = writerFor(part.piece)
      const frames: OutFrame[] = []
      for (const frame of part.piece.frames) frames.push(...target.write(frame))
      return frames
    },
    fail: (error: ApiError) => writerFor({ format: format.name }).fail(error),
  }
}

/**
 * The text of a plain answer. An answer that came plain in the caller's format only gets the receipt; every other one is
 * written as a stream and folded.
 */
export async function foldAnswer(
  parts: Parts,
  format: CallerFormat,
  answering: Answering,
): Promise<string> {
  const writer = createPartWriter(format, answering)
  const frames: OutFrame[] = []
  let whole: SourceFrame | undefined
  let text: string | undefined
  let bytes = 0
  try {
    for await (const part of parts) {
      whole ??= plainBodyOf(part, format)
      if (whole) {
        if ('receipt' in part) text = format.settlePlain(whole, part.receipt)
        continue
      }
      bytes += sizeOf(part)
      if (bytes > plainMaxBytes) throw await giveUp(parts, answerTooLarge())
      let written: OutFrame[]
      try {
        written = writer.write(part)
      } catch (error) {
        throw await giveUp(parts, error)
      }
      for (const { event, data } of written) frames.push({ event, data, bytes: null })
    }
    return text ?? JSON.stringify(format.fold(frames))
  } catch (error) {
    throw toUpstreamError(error)
  }
}

/** The body of an answer that came plain in the caller's format. */
function plainBodyOf(part: AnswerPart, { name }: CallerFormat): SourceFrame | undefined {
  if ('receipt' in part) return undefined
  const { isPlain, isRebuilt, format, frames } = part.piece
  return isPlain && !isRebuilt && format === name ? frames[0]?.source : undefined
}

function sizeOf(part: AnswerPart): number {
  if ('receipt' in part) return 0
  return part.piece.frames.reduce((sum, { source }) => sum + source.bytes.length, 0)
}

/** If an answer turns out to be broken only when it is written, the upstream has failed, too. */
const toUpstreamError = (error: unknown) =>
  error instanceof BrokenAnswer ? toFailure(error).error : error

/** Throws the error of writing into the call, so that its bill knows the reason; returns the error. */
async function giveUp(parts: Parts, error: unknown): Promise<unknown> {
  const failure = toUpstreamError(error)
  try {
    await parts.throw?.(failure)
  } catch {
    // The call throws the same error again.
  }
  return failure
}

const pingEveryMs = 15_000

/**
 * Writes an answer as it comes, and returns the error it ended with. Frames that arrive together are written together. Nothing
 * is read from the upstream while the client does not read. An error in the middle is sent in the caller's format.
 */
export async function streamAnswer(
  parts: Parts,
  stream: EventStream,
  {
    format,
    answering,
    cancellation,
  }: { format: CallerFormat; answering: Answering; cancellation: Cancellation },
): Promise<ApiError | undefined> {
  const writer = createPartWriter(format, answering)
  const pings = startPings(stream, format.ping)
  try {
    for await (const part of parts) {
      pings.restart(pingEveryMs)
      let frames: OutFrame[]
      try {
        frames = writer.write(part)
      } catch (error) {
        throw await giveUp(parts, error)
      }
      if (frames.length === 0) continue
      const isDrained = stream.write(joinSse(frames))
      if (isDrained) await isDrained
    }
    return undefined
  } catch (error) {
    if (cancellation.reason instanceof ClientGone || error instanceof ClientGone) return undefined
    const failure = toApiError(toUpstreamError(error))
    await tryToWrite(stream, joinSse(writer.fail(failure)))
    return failure
  } finally {
    pings.stop()
    stream.end()
  }
}

/** Sends a ping whenever nothing has been sent for a while. */
function startPings(stream: EventStream, ping: string): WheelDeadline {
  const pings: WheelDeadline = startDeadline(pingEveryMs, {
    onDue() {
      pings.restart(pingEveryMs)
      void tryToWrite(stream, ping) // the next write of the answer reports a closed connection
    },
  })
  return pings
}

async function tryToWrite(stream: EventStream, bytes: Buffer | string) {
  try {
    await stream.write(bytes)
  } catch {
    // The client is gone.
  }
}
