import type { Frame, Json, Piece, Reader } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import type { RawFrame } from '#formats/framing.ts'
import { isObject } from '#formats/json-values.ts'
import type { AnswerBody } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'

const frameMaxBytes = 8 * 1024 * 1024
const restMaxBytes = 64 * 1024
const restMaxMs = 1000
const preambleMax = 100

type Options = {
  format: UpstreamFormat
  upstream: Upstream
  /** Called once, however the answer ends. */
  onEnd: () => void
}

/** Reads an answer as it comes, until it is finished. Throws when it is broken or ends in the middle. */
export async function* readPieces(
  body: AnswerBody,
  { format, upstream, onEnd }: Options,
): AsyncGenerator<Piece> {
  const parser = format.framing.createParser({ frameMaxBytes })
  const reader = format.createReader()
  /** Comments and pings before the answer: with those alone it has not started. */
  let preamble: Frame[] = []
  let hasBegun = false
  /** Frames before a broken one are still part of the answer. */
  function* toPieces(sent: readonly RawFrame[]): Generator<Piece> {
    const { frames, problem } = readFrames(sent, reader, format)
    hasBegun ||= frames.some(({ events }) => events.length > 0)
    if (!hasBegun) preamble.push(...frames.slice(0, preambleMax - preamble.length))
    else if (frames.length > 0) {
      yield { format: format.name, frames: preamble.length > 0 ? [...preamble, ...frames] : frames }
      preamble = []
    }
    if (problem)
      throw hasSecret(problem, upstream) ? new BrokenAnswer('An error quoted our key.') : problem
  }
  try {
    // The body stays open when the answer is finished: `discardRest` reads what follows.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      yield* toPieces(parser.feed(chunk))
      if (reader.isFinished()) break
    }
    if (!reader.isFinished()) yield* toPieces(parser.end())
    if (!reader.isFinished()) yield* toPieces([endOfStream])
    if (!reader.isFinished()) throw new BrokenAnswer('The answer ended in the middle.')
  } finally {
    onEnd()
    if (reader.isFinished()) discardRest(body)
    else body.destroy()
  }
}

/** Some providers quote our key in their errors: such an error must not reach callers or the log. */
const hasSecret = (problem: unknown, { secret }: Upstream) =>
  secret !== null && problem instanceof Error && problem.message.includes(secret)

/** A connection can be reused when its answer was read to the end, unless that takes too long. */
function discardRest(body: AnswerBody) {
  body
    .dump({ limit: restMaxBytes, signal: AbortSignal.timeout(restMaxMs) })
    .catch(() => body.destroy())
}

/** Some upstreams end the stream without an end marker: the reader decides whether the answer was complete. */
const endOfStream: RawFrame = { event: '', data: '[DONE]', bytes: Buffer.alloc(0) }

function readFrames(sent: readonly RawFrame[], reader: Reader, format: UpstreamFormat) {
  const frames: Frame[] = []
  try {
    for (const frame of sent) {
      if (reader.isFinished()) break
      const { event, data, bytes } = frame
      const json = readJson(data)
      const source = { event, data, bytes, json }
      frames.push({
        events: reader.read(source),
        source,
        reportedUsage: format.usageIn(json),
        hasMedia: format.hasMedia?.(json) ?? false,
      })
    }
  } catch (error) {
    return { frames, problem: error }
  }
  return { frames, problem: undefined }
}

function readJson(data: string): Json {
  if (data === '' || data === '[DONE]') return {}
  let json: unknown
  try {
    json = JSON.parse(data)
  } catch {
    throw new BrokenAnswer('A frame is not JSON.')
  }
  if (isObject(json)) return json
  throw new BrokenAnswer('A frame is not a JSON object.')
}
