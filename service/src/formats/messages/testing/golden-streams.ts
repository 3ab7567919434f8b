import { readdirSync, readFileSync } from 'node:fs'

import type { AnswerEvent, Frame, Json, OutFrame, SourceFrame, Writer } from '#formats/answer.ts'
import { createMessageReader } from '#formats/messages/read-message-stream.ts'

const folder = new URL('golden/', import.meta.url)

/** What a stream of the corpus means: as it came, and where it differs, as rebuilt from its events. */
type Expected = { events: AnswerEvent[]; body: Json; rebuilt?: Json }

export const bytesOf = (name: string) => readFileSync(new URL(`${name}.sse`, folder))

export const expectedOf = (name: string) =>
  JSON.parse(readFileSync(new URL(`${name}.json`, folder), 'utf8')) as Expected

/** The streams that come to their end. */
export const wholeStreams = readdirSync(folder)
  .filter((file) => file.endsWith('.json'))
  .map((file) => file.replace('.json', ''))

export const answering = {
  requestId: 'req_0123456789abcdefghjkmnpq',
  model: 'our-model',
  createdAt: new Date(0),
  inputTokens: 42,
  request: {},
}

export const receipt = { remainingCredits: 4999, creditsUsed: 123, costUsd: 0.000123, usage: null }

/** Read one after the other, as the pipeline does. */
export function readAll(sources: readonly SourceFrame[]): Frame[] {
  const reader = createMessageReader()
  return sources.map((source) => ({ events: reader.read(source), source }))
}

export const eventsOf = (frames: readonly Frame[]) => frames.flatMap(({ events }) => events)

export const writeAll = (writer: Writer, frames: readonly Frame[]): OutFrame[] => [
  ...frames.flatMap((frame) => writer.write(frame)),
  ...writer.close(receipt),
]
