import type { AnswerEvent, Json, Reader, SourceFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asText, isObject, objectOf } from '#formats/json-values.ts'
import { toProviderError } from '#formats/provider-failure.ts'

import { readMessageError } from './message-error.ts'
import { mergeUsage, readMessageUsage } from './message-usage.ts'
import { type BlockReader, createBlockReader } from './read-message-block.ts'
import { readStopReason } from './stop-reason.ts'

/** The state of the answer so far. */
type State = {
  isStarted: boolean
  isFinished: boolean
  /** By the upstream's own index. The index in our events leaves out unknown blocks. */
  blocks: Map<number, BlockReader>
  nextIndex: number
  usage: Json
  stopReason: unknown
  stopSequence: string | null
}

/**
 * Reads a stream of this format, which runs from `message_start` to `message_stop`. Events before it are an
 * error; events after it and unknown events are ignored. `message_stop` finishes the answer, not
 * `message_delta`, of which there may be several.
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
      if (type === 'error') throw toProviderError(readMessageError(frame.json))
      const step = Object.hasOwn(steps, type) ? steps[type as keyof typeof steps] : undefined
      if (!step) return []
      if (state.isStarted === (type === 'message_start')) {
        throw new BrokenAnswer(`The event ${type} came at the wrong time.`)
      }
      return step(state, frame.json)
    },
    isFinished: () => state.isFinished,
    isRepeatable: () => true,
  }
}

/** The type of an event; the name on the `event:` line is used where the data has none. */
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
  // The output tokens reported here are a starting value, not the result.
  state.usage = { ...usage, output_tokens: 0 }
  const id = asText(message['id']) ?? ''
  const model = asText(message['model']) ?? ''
  return [{ type: 'started', id, model, usage: readMessageUsage(usage) }]
}

function startBlock(state: State, json: Json): AnswerEvent[] {
  const index = indexIn(json)
  if (state.blocks.has(index)) throw new BrokenAnswer(`Block ${index} was started twice.`)
  const block = createBlockReader(state.nextIndex, objectIn(json, 'content_block'))
  state.blocks.set(index, block)
  if (block.isKnown) state.nextIndex += 1
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
      usage: readMessageUsage(state.usage),
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
