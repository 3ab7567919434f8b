import type { Frame, Json, Piece } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import type { UpstreamFormat } from '#formats/format.ts'
import { isObject } from '#formats/json-values.ts'
import type { AnswerHeaders } from '#platform/calls/exchange.ts'
import type { StreamedAnswer } from '#platform/calls/streamed-answer.ts'

import type { Upstream } from './catalogue.ts'
import { withoutSecret } from './read-pieces.ts'
import { answerTooLarge, AttemptFailed, plainMaxBytes, toFailure } from './upstream-failure.ts'

export const plainMediaType = 'application/json'

/** Whether a body has this type and is not compressed, as the request demanded. */
export function isOfType(headers: AnswerHeaders, mediaType: string): boolean {
  const type = String(headers['content-type'] ?? '')
  return type.startsWith(mediaType) && (headers['content-encoding'] ?? 'identity') === 'identity'
}

type Asked = { format: UpstreamFormat; upstream: Upstream }

/** Reads the body of a plain answer to its end. The result is one piece with the events of the whole answer. */
export async function readPlainAnswer(answer: StreamedAnswer, asked: Asked): Promise<Piece> {
  const frame = readBody(await readWhole(answer), asked)
  return { format: asked.format.name, frames: [frame], isPlain: true }
}

function readBody(bytes: Buffer, { format, upstream }: Asked): Frame {
  const data = bytes.toString()
  try {
    const frame = format.readPlain?.({ event: '', data, bytes, json: parse(data) })
    if (frame) return frame
  } catch (problem) {
    throw withoutSecret(problem as Error, upstream)
  }
  throw new BrokenAnswer(`The format ${format.name} has no plain answers.`)
}

function parse(text: string): Json {
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw new BrokenAnswer('The answer is not JSON.')
  }
  if (isObject(json)) return json
  throw new BrokenAnswer('The answer is not a JSON object.')
}

/**
 * An answer that has begun to arrive is not requested again, because the model has already written it. Like a stream that
 * breaks in the middle, it does not count against the upstream.
 */
async function readWhole(answer: StreamedAnswer): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    while (!answer.isRead) {
      const chunk = answer.take()
      if (chunk) {
        chunks.push(chunk)
        bytes += chunk.length
        if (bytes > plainMaxBytes) throw answerTooLarge()
      } else await answer.arrival()
    }
  } catch (error) {
    answer.destroy()
    if (!chunks.some(hasWritten)) throw error
    throw new AttemptFailed({ ...toFailure(error), remedy: 'final', health: 'good' })
  }
  const [first] = chunks
  return first && chunks.length === 1 ? first : Buffer.concat(chunks)
}

/** Some upstreams send white space while they make their callers wait. */
const hasWritten = (chunk: Buffer) => /\S/.test(chunk.toString('latin1'))
