import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import type {
  AnswerEvent,
  Block,
  Frame,
  Json,
  OutFrame,
  SourceFrame,
  StopReason,
  Usage,
} from '#formats/answer.ts'
import type { Answering } from '#formats/format.ts'
import { responseUpstreamFormat } from '#formats/responses/response-format.ts'
import { toSse } from '#formats/sse.ts'
import { parseStream } from '#formats/testing/parse-stream.ts'
import type { OpaqueState } from '#formats/turn.ts'

/** What an answer says in the end, however it was cut into pieces. */
export type Summary = {
  id: string
  model: string
  blocks: { index: number; block: Block; text: string; opaque: OpaqueState | null }[]
  reason: StopReason
  usage: Usage
}

const folder = join(import.meta.dirname, 'golden')
const names = readdirSync(folder).filter((name) => name.endsWith('.sse'))

/** Every stream of the corpus; those without a summary end badly. */
export const goldenStreams = names.map((file) => {
  const name = file.slice(0, -'.sse'.length)
  const path = join(folder, `${name}.json`)
  const hasSummary = readdirSync(folder).includes(`${name}.json`)
  return {
    name,
    bytes: readFileSync(join(folder, file)),
    summary: hasSummary ? (JSON.parse(readFileSync(path, 'utf8')) as Summary) : null,
  }
})

export const finishedStreams = goldenStreams.flatMap(({ summary, ...stream }) =>
  summary ? [{ ...stream, summary }] : [],
)

export const answering: Answering = {
  requestId: 'req_0123456789abcdefghjkmnpq',
  model: 'house-model',
  createdAt: new Date('2026-09-22T10:00:00.500Z'),
  inputTokens: 42,
  request: { model: 'house-model', input: 'Hello' },
}

export const receipt = { remainingCredits: 900, creditsUsed: 100, costUsd: 0.0001, usage: null }
export const credits = {
  remaining_credits: 900,
  estimated_credits_used: 100,
  estimated_cost_usd: 0.0001,
}

/** Frames as an upstream of this format would send them. */
export const toSource = (...written: Json[]): SourceFrame[] =>
  parseStream(
    written.map((data) => Buffer.from(toSse({ event: String(data['type']), data, bytes: null }))),
  )

export const parseOutput = (frames: readonly OutFrame[]) =>
  parseStream(frames.map((frame) => Buffer.from(toSse(frame))))

export function readAll(frames: readonly SourceFrame[]): Frame[] {
  const reader = responseUpstreamFormat.createReader()
  return frames.map((source) => ({ events: reader.read(source), source }))
}

export const eventsOf = (frames: readonly SourceFrame[]) =>
  readAll(frames).flatMap(({ events }) => events)

/** Sums events up, and throws where they break the rules that stand above AnswerEvent. */
export function sumUp(events: readonly AnswerEvent[]): Summary {
  const first = events[0]
  const last = events.at(-1)
  if (first?.type !== 'started' || last?.type !== 'finished') throw new Error('no start or no end')
  const blocks: (Summary['blocks'][number] & { isOpen: boolean })[] = []
  for (const event of events.slice(1, -1)) {
    if (event.type === 'started' || event.type === 'finished') throw new Error('twice')
    if (event.type === 'block_started') {
      if (event.index !== blocks.length) throw new Error('a block has the wrong number')
      blocks.push({ index: event.index, block: event.block, text: '', opaque: null, isOpen: true })
      continue
    }
    const block = blocks[event.index]
    if (!block?.isOpen) throw new Error('a block is not open')
    if (event.type === 'block_delta') {
      if (block.opaque || event.text === '') throw new Error('a delta is late or empty')
      block.text += event.text
    } else if (event.type === 'block_sealed') block.opaque = event.opaque
    else block.isOpen = false
  }
  if (blocks.some(({ isOpen }) => isOpen)) throw new Error('a block never ends')
  const { id, model } = first
  const closed = blocks.map(({ isOpen: _, ...block }) => block)
  return { id, model, blocks: closed, reason: last.reason, usage: last.usage }
}
