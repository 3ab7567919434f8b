import type { Frame, Json, Piece, Reader } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import type { Protocol } from '#inference/protocol.ts'
import { createSseParser, type SseFrame } from '#inference/sse.ts'
import { isObject } from '#inference/untyped.ts'
import type { AnswerBody } from '#platform/origin-pools.ts'

import type { Upstream } from './catalogue.ts'

const frameMaxBytes = 8 * 1024 * 1024
const restMaxBytes = 64 * 1024
const restMaxMs = 1000
const earlyMax = 100

type Options = {
  protocol: Protocol
  upstream: Upstream
  /** Called once, however the answer ends. */
  onEnd: () => void
}

/** Reads an answer as it comes, until it is finished. Throws when it makes no sense, or ends in the middle. */
export async function* readPieces(
  body: AnswerBody,
  { protocol, upstream, onEnd }: Options,
): AsyncGenerator<Piece> {
  const parser = createSseParser({ frameMaxBytes })
  const reader = protocol.createReader()
  /** Comments and pings before the answer itself: with those alone it has not begun. */
  let early: Frame[] = []
  let hasBegun = false
  /** What came before a frame that makes no sense is still part of the answer. */
  function* toPieces(sent: readonly SseFrame[]): Generator<Piece> {
    const { frames, problem } = readFrames(sent, reader)
    hasBegun ||= frames.some(({ events }) => events.length > 0)
    if (!hasBegun) early.push(...frames.slice(0, earlyMax - early.length))
    else if (frames.length > 0) {
      yield { protocol: protocol.name, frames: early.length > 0 ? [...early, ...frames] : frames }
      early = []
    }
    if (problem)
      throw speaksOfSecret(problem, upstream) ? new BrokenAnswer('It told a secret.') : problem
  }
  try {
    // Left open when the answer is finished: what may follow is read away below.
    for await (const chunk of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
      yield* toPieces(parser.feed(chunk))
      if (reader.isFinished()) break
    }
    if (!reader.isFinished()) yield* toPieces(parser.end())
    if (!reader.isFinished()) yield* toPieces([endOfStream])
    if (!reader.isFinished()) throw new BrokenAnswer('The answer ended in the middle.')
  } finally {
    onEnd()
    if (reader.isFinished()) readRest(body)
    else body.destroy()
  }
}

/** Some providers repeat our key in what they say of a failure: then nobody hears their words. */
const speaksOfSecret = (problem: unknown, { secret }: Upstream) =>
  secret !== null && problem instanceof Error && problem.message.includes(secret)

/** A connection that has been read to its end can be used again; one that goes on and on cannot. */
function readRest(body: AnswerBody) {
  body
    .dump({ limit: restMaxBytes, signal: AbortSignal.timeout(restMaxMs) })
    .catch(() => body.destroy())
}

/** Some upstreams just stop when they have said all: the reader decides whether they had. */
const endOfStream: SseFrame = { event: '', data: '[DONE]', bytes: Buffer.alloc(0) }

function readFrames(sent: readonly SseFrame[], reader: Reader) {
  const frames: Frame[] = []
  try {
    for (const frame of sent) {
      if (reader.isFinished()) break
      const { event, data, bytes } = frame
      const source = { event, data, bytes, json: readJson(data) }
      frames.push({ events: reader.read(source), source })
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
