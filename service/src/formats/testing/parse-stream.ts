import type { Json, SourceFrame } from '#formats/answer.ts'
import type { RawFrame } from '#formats/framing.ts'
import { createSseParser } from '#formats/sse.ts'

/** For tests: the frames of a stream that arrives in the given pieces. */
export function parseStream(pieces: readonly Buffer[]): SourceFrame[] {
  const parser = createSseParser({ frameMaxBytes: 1_000_000 })
  const frames = [...pieces.flatMap((piece) => parser.feed(piece)), ...parser.end()]
  return frames.map(withJson)
}

function withJson(frame: RawFrame): SourceFrame {
  const isJson = frame.data !== '' && frame.data !== '[DONE]'
  return { ...frame, json: isJson ? (JSON.parse(frame.data) as Json) : {} }
}

/** For tests: the bytes, cut at the given places. */
export function cutAt(bytes: Buffer, places: readonly number[]): Buffer[] {
  const ends = [...places.map((place) => place % bytes.length), bytes.length]
  return ends
    .toSorted((one, other) => one - other)
    .map((end, position, all) => bytes.subarray(all[position - 1] ?? 0, end))
}
