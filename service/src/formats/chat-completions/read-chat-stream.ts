import {
  type AnswerEvent,
  type Json,
  noUsage,
  type Reader,
  type SourceFrame,
} from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asObject, asText, isObject, listOf, objectOf } from '#formats/json-values.ts'
import { toProviderError } from '#formats/provider-failure.ts'

import { createBlocks } from './chat-blocks.ts'
import { readChatError } from './chat-error.ts'
import { finishReasonOf, readFinishReason } from './chat-finish-reason.ts'
import { readChatUsage } from './chat-usage.ts'
import { readSignature } from './reasoning-signature.ts'
import { toolCallIndex } from './tool-call-index.ts'

/**
 * Reads the chunks of a chat completion. The first chunk with a choice starts the answer, deltas fill its
 * blocks, and the finish reason ends them. The usage that follows finishes the answer, or else `[DONE]`: usage
 * may come in the same chunk as the finish reason, in one of its own, or never.
 */
export function createChatReader(): Reader {
  let events: AnswerEvent[] = []
  const blocks = createBlocks((event) => events.push(event))
  let answerId: string | undefined
  let hasDeltas = false
  let finishReason: string | undefined
  let usage = noUsage
  let isFinished = false
  let last: Json = {}

  function finish() {
    if (finishReason === undefined) throw new BrokenAnswer('The answer ended in the middle.')
    blocks.end(answerId ?? '')
    const reason = readFinishReason(finishReason, blocks.content)
    events.push({ type: 'finished', reason, stopSequence: null, usage })
    isFinished = true
  }

  function readChoice(choice: Json, chunk: Json) {
    if (answerId === undefined) {
      answerId = asText(chunk['id']) ?? ''
      events.push({ type: 'started', id: answerId, model: asText(chunk['model']) ?? '', usage })
    }
    const delta = asObject(choice['delta'])
    hasDeltas ||= delta !== undefined
    // Some upstreams repeat the whole message beside the deltas.
    readDelta(delta ?? (hasDeltas ? undefined : asObject(choice['message'])) ?? {}, blocks)
    const reason = finishReasonOf(choice)
    if (reason === undefined || finishReason !== undefined) return
    finishReason = reason
    blocks.end(answerId)
  }

  function readChunk(chunk: Json) {
    const hadFinishReason = finishReason !== undefined
    const reported = asObject(chunk['usage'])
    if (reported) usage = readChatUsage(reported)
    for (const choice of choicesOf(chunk)) readChoice(choice, chunk)
    if (hadFinishReason && reported) finish()
  }

  return {
    read(frame: SourceFrame) {
      events = []
      if (isFinished || frame.data === '') return events
      last = frame.json
      if (frame.data === '[DONE]') finish()
      else if (isFailure(frame)) throw toProviderError(readChatError(frame.json))
      else readChunk(frame.json)
      return events
    },
    isFinished: () => isFinished,
    // The arguments of a tool call are also collected, so a frame with one is always read.
    isRepeatable: ({ index }) => blocks.isProse(index) && !choicesOf(last).some(hasToolCalls),
  }
}

const hasToolCalls = (choice: Json) => listOf(objectOf(choice['delta'])['tool_calls']).length > 0

const isFailure = ({ event, json }: SourceFrame) => event === 'error' || Boolean(json['error'])

function readDelta(delta: Json, blocks: Blocks) {
  blocks.addProse('reasoning', reasoningOf(delta))
  const signature = signatureOf(delta)
  if (signature !== '') blocks.seal(readSignature(signature))
  readSpoken(delta, blocks)
}

type Blocks = ReturnType<typeof createBlocks>

/** Upstreams have two names for it. */
export const reasoningOf = (message: Json): string =>
  proseOf(message, 'reasoning_content') || (asText(message['reasoning']) ?? '')

export const signatureOf = (message: Json): string => asText(message['reasoning_signature']) ?? ''

/** Everything but the reasoning, of a delta or of a whole message. */
export function readSpoken(delta: Json, blocks: Blocks) {
  blocks.addProse('text', proseOf(delta, 'content'))
  blocks.addProse('refusal', proseOf(delta, 'refusal'))
  for (const [position, call] of listOf(delta['tool_calls']).entries()) {
    if (!isObject(call)) throw new BrokenAnswer('A tool call is not an object.')
    blocks.addCall(toolCallIndex(call, position, blocks.callIds), readCall(call))
  }
  const legacyCall = asObject(delta['function_call'])
  if (legacyCall) blocks.addCall(0, readCall({ id: 'call_function', function: legacyCall }))
}

export function choicesOf(chunk: Json): Json[] {
  const choices = chunk['choices'] ?? []
  if (!Array.isArray(choices)) throw new BrokenAnswer('The choices of a chunk are not a list.')
  return choices.map((choice: unknown) => {
    if (!isObject(choice)) throw new BrokenAnswer('A choice is not an object.')
    // Gatehouse asks for one choice: another one would be neither judged nor counted.
    if ((choice['index'] ?? 0) !== 0) throw new BrokenAnswer('A chunk has a second choice.')
    return choice
  })
}

function proseOf(delta: Json, member: string): string {
  const text = delta[member] ?? ''
  if (typeof text !== 'string') throw new BrokenAnswer(`The ${member} of a chunk is not text.`)
  return text
}

/** The input of a custom tool is text and not JSON; it takes the place of the arguments. */
function readCall(call: Json) {
  const called = asObject(call['function']) ?? objectOf(call['custom'])
  const given = called['arguments'] ?? called['input'] ?? ''
  if (typeof given !== 'string')
    throw new BrokenAnswer('The arguments of a tool call are not text.')
  return {
    id: asText(call['id']) ?? '',
    name: asText(called['name']) ?? '',
    arguments: given,
  }
}
