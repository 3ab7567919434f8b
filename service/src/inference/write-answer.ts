import type { EventStream } from '#http/event-stream.ts'
import { ApiError } from '#platform/api-error.ts'
import { ClientGone } from '#platform/client-gone.ts'
import { toApiError } from '#platform/to-api-error.ts'

import type { Json, OutFrame, Writer } from './answer.ts'
import { BrokenAnswer } from './broken-answer.ts'
import type { Answering, Protocol } from './protocol.ts'
import type { AnswerPart } from './run-inference.ts'
import { toSse } from './sse.ts'
import type { ProtocolName } from './turn.ts'
import { failureOf } from './upstreams/upstream-failure.ts'

type Parts = AsyncIterable<AnswerPart>

/** Writes parts of an answer in the caller's format; how depends on the format that they come in. */
function createPartWriter(protocol: Protocol, answering: Answering) {
  let writer: Writer | undefined
  const writerFor = (source: ProtocolName) => {
    const isSame = source === protocol.name
    return (writer ??= isSame
      ? protocol.createPassThrough(answering)
      : protocol.createWriter(answering))
  }
  return {
    write(part: AnswerPart): OutFrame[] {
      if ('receipt' in part) return writerFor(protocol.name).close(part.receipt)
      const { protocol: source, frames } = part.piece
      const target = writerFor(source)
      return frames.flatMap((frame) => target.write(frame))
    },
    fail: (error: ApiError) => writerFor(protocol.name).fail(error),
  }
}

/** More than any model writes; a plain answer has to fit into memory, once as frames and once as a body. */
const plainMaxBytes = 32 * 1024 * 1024

/** A plain answer is a folded stream. */
export async function foldAnswer(
  parts: Parts,
  protocol: Protocol,
  answering: Answering,
): Promise<Json> {
  const writer = createPartWriter(protocol, answering)
  const frames: OutFrame[] = []
  let bytes = 0
  try {
    for await (const part of parts) {
      bytes += sizeOf(part)
      if (bytes > plainMaxBytes) {
        throw new ApiError('upstream_error', 'The answer of the model provider is too large.')
      }
      for (const { event, data } of writer.write(part)) frames.push({ event, data, bytes: null })
    }
    return protocol.fold(frames)
  } catch (error) {
    throw asFailure(error)
  }
}

function sizeOf(part: AnswerPart): number {
  if ('receipt' in part) return 0
  return part.piece.frames.reduce((sum, { source }) => sum + source.bytes.length, 0)
}

/** What only shows when an answer is put together is the upstream's fault as well. */
const asFailure = (error: unknown) =>
  error instanceof BrokenAnswer ? failureOf(error).error : error

const pingEveryMs = 15_000

/**
 * Writes an answer as it comes. What arrives together is written together, and nothing is read while the
 * client does not take what is there. An error in the middle is told in the caller's format.
 */
export async function streamAnswer(
  parts: Parts,
  stream: EventStream,
  {
    protocol,
    answering,
    signal,
  }: { protocol: Protocol; answering: Answering; signal: AbortSignal },
): Promise<ApiError | undefined> {
  const writer = createPartWriter(protocol, answering)
  const pinger = setInterval(() => {
    stream.write(protocol.ping).catch(() => undefined) // whoever writes next learns that it is gone
  }, pingEveryMs)
  try {
    for await (const part of parts) {
      pinger.refresh()
      const frames = writer.write(part)
      if (frames.length > 0) await stream.write(joined(frames))
    }
    return undefined
  } catch (error) {
    if (signal.aborted || error instanceof ClientGone) return undefined
    const told = toApiError(asFailure(error))
    await stream.write(joined(writer.fail(told))).catch(() => undefined)
    return told
  } finally {
    clearInterval(pinger)
    stream.end()
  }
}

function joined(frames: readonly OutFrame[]): Buffer | string {
  const [first, ...others] = frames.map(toSse)
  if (first === undefined) return ''
  return others.length === 0 ? first : Buffer.concat([first, ...others].map(toBytes))
}

const toBytes = (piece: Buffer | string) => (typeof piece === 'string' ? Buffer.from(piece) : piece)
