import type { AnswerEvent, Json, Reader, SourceFrame } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { providerFailed } from '#inference/provider-failure.ts'
import { asText, isObject, objectOf } from '#inference/untyped.ts'

import { readMessageError } from './message-error.ts'
import { mergeUsage, readUsage } from './message-usage.ts'
import { type BlockReader, createBlockReader } from './read-message-block.ts'
import { readStopReason } from './stop-reason.ts'

/** What is known of the answer so far. */
type State = {
  isStarted: boolean
  isFinished: boolean
  /** By the upstream's own numbers; our own numbers leave out blocks that have no meaning for us. */
  blocks: Map<number, BlockReader>
  nextIndex: number
  usage: Json
  stopReason: unknown
  stopSequence: string | null
}

/**
 * Reads a stream of this format. It runs from `message_start` to `message_stop`: what comes before is an
 * error, what comes after is ignored, and so are events that we do not know. The end is told at
 * `message_stop` and not at `message_delta`, of which there may be several.
 */
export function createMessageReader(): Reader {
  const state: State = {
    isStarted: false,
    isFinished: false,
    blocks: new Map(),
    nextIndex: 0,
    usage: {},
    stopReason: null,
    stopSequence: null,
  }
  return {
    read(frame) {
      const type = typeOf(frame)
      if (state.isFinished) return []
      if (type === 'error') throw providerFailed(readMessageError(frame.json))
      const step = Object.hasOwn(steps, type) ? steps[type as keyof typeof steps] : undefined
      if (!step) return []
      if (state.isStarted === (type === 'message_start')) {
        throw new BrokenAnswer(`The event ${type} came at the wrong time.`)
      }
      return step(state, frame.json)
    },
    isFinished: () => state.isFinished,
  }
}

/** The kind of an event; the name on the `event:` line helps out where the data have none. */
export const typeOf = ({ json, event }: Pick<SourceFrame, 'json' | 'event'>): string =>
  asText(json['type']) ?? event

const steps = {
  message_start: start,
  content_block_start: startBlock,
  content_block_delta: (state: State, json: Json) =>
    blockAt(state, json).read(objectIn(json, 'delta')),
  content_block_stop: (state: State, json: Json) => blockAt(state, json).end(),
  message_delta: noteEnd,
  message_stop: finish,
}

function start(state: State, json: Json): AnswerEvent[] {
  const message = objectIn(json, 'message')
  const usage = objectOf(message['usage'])
  state.isStarted = true
  // What is said here about the output is where it starts, not what it will be.
  state.usage = { ...usage, output_tokens: 0 }
  const id = asText(message['id']) ?? ''
  const model = asText(message['model']) ?? ''
  return [{ type: 'started', id, model, usage: readUsage(usage) }]
}

function startBlock(state: State, json: Json): AnswerEvent[] {
  const at = indexIn(json)
  if (state.blocks.has(at)) throw new BrokenAnswer(`Block ${at} was started twice.`)
  const block = createBlockReader(state.nextIndex, objectIn(json, 'content_block'))
  state.blocks.set(at, block)
  if (block.hasMeaning) state.nextIndex += 1
  return block.start()
}

function noteEnd(state: State, json: Json): AnswerEvent[] {
  const delta = objectOf(json['delta'])
  state.stopReason = delta['stop_reason'] ?? state.stopReason
  state.stopSequence = asText(delta['stop_sequence']) ?? state.stopSequence
  state.usage = mergeUsage(state.usage, objectOf(json['usage']))
  return []
}

function finish(state: State): AnswerEvent[] {
  const ends = [...state.blocks.values()].flatMap((block) => block.end())
  state.isFinished = true
  return [
    ...ends,
    {
      type: 'finished',
      reason: readStopReason(state.stopReason),
      stopSequence: state.stopSequence,
      usage: readUsage(state.usage),
    },
  ]
}

function blockAt(state: State, json: Json): BlockReader {
  const index = indexIn(json)
  const block = state.blocks.get(index)
  if (!block) throw new BrokenAnswer(`Block ${index} was never started.`)
  return block
}

function indexIn({ index }: Json): number {
  if (!Number.isInteger(index)) throw new BrokenAnswer('A block has no index.')
  return index as number
}

function objectIn(json: Json, name: string): Json {
  const value = json[name]
  if (!isObject(value)) throw new BrokenAnswer(`An event has no ${name}.`)
  return value
}
