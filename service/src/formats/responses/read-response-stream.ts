import type { AnswerEvent, Json, Reader, SourceFrame, StopReason } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asIndex, asObject, asText, objectOf } from '#formats/json-values.ts'
import { readComplaint, toProviderError } from '#formats/provider-failure.ts'

import { endBlock, createAnswerState, type AnswerState } from './answer-state.ts'
import { addArguments, completeArguments } from './read-calls.ts'
import { readItemAdded, readOutput, readItemDone, findItem, findItemOfKind } from './read-items.ts'
import {
  addPartText,
  addReasoningDelta,
  completePart,
  completeReasoningPart,
  partTypeOf,
  findOrStartPart,
  chooseReasoning,
} from './read-texts.ts'
import { readUsage } from './response-usage.ts'

/**
 * Reads a stream of this format. Each item has an `output_index`, and items may overlap. A text comes in deltas,
 * and as a whole when its part, its item or the response is done. A whole text only adds what the deltas left
 * out, and must not contradict them.
 */
export function createResponseReader(): Reader {
  const state = createAnswerState()
  return {
    read(frame) {
      if (state.isFinished) return []
      readFrame(state, frame)
      return takeEvents(state)
    },
    isFinished: () => state.isFinished,
  }
}

function takeEvents(state: AnswerState): AnswerEvent[] {
  const { events } = state
  state.events = []
  return events
}

function readFrame(state: AnswerState, { event, json }: SourceFrame) {
  const type = asText(json['type']) ?? event
  const error = asObject(json['error'])
  if (type === 'error' || (type === '' && error))
    throw toProviderError(readComplaint(error ?? json))
  const read = frames.get(type)
  if (!read) return
  begin(state, json)
  read(state, json)
}

/** The reader of each type of frame; other types are ignored. */
const frames = new Map<string, (state: AnswerState, json: Json) => void>(
  Object.entries({
    'response.created': () => undefined,
    'response.queued': () => undefined,
    'response.in_progress': () => undefined,
    'response.output_item.added': readItemAdded,
    'response.output_item.done': readItemDone,
    'response.content_part.added': (state, json) => void startPart(state, json),
    'response.content_part.done': endPart,
    'response.output_text.delta': addTextOf('text'),
    'response.output_text.done': completeTextOf('text'),
    'response.refusal.delta': addTextOf('refusal'),
    'response.refusal.done': completeTextOf('refusal'),
    'response.function_call_arguments.delta': addToCall('function_call'),
    'response.function_call_arguments.done': completeCall('function_call', 'arguments'),
    'response.custom_tool_call_input.delta': addToCall('custom_tool_call'),
    'response.custom_tool_call_input.done': completeCall('custom_tool_call', 'input'),
    'response.reasoning_summary_text.delta': addReasoningText('summary', 'summary_index'),
    'response.reasoning_summary_text.done': completeReasoningText('summary', 'summary_index'),
    'response.reasoning_text.delta': addReasoningText('content', 'content_index'),
    'response.reasoning_text.done': completeReasoningText('content', 'content_index'),
    'response.completed': finish(false),
    'response.incomplete': finish(true),
    'response.failed': fail,
    'response.cancelled': fail,
  }),
)

function begin(state: AnswerState, json: Json) {
  if (state.hasStarted) return
  state.hasStarted = true
  const response = objectOf(json['response'])
  state.events.push({
    type: 'started',
    id: asText(response['id']) ?? '',
    model: asText(response['model']) ?? '',
    usage: readUsage(response),
  })
}

function startPart(state: AnswerState, json: Json) {
  const item = findItem(state, json)
  const written = asObject(json['part'])
  const kind = written && partTypeOf(written)
  if (!kind || item.type !== 'message') return undefined
  return { part: findOrStartPart(state, item, json['content_index'], kind.type), written, kind }
}

function endPart(state: AnswerState, json: Json) {
  const found = startPart(state, json)
  if (!found) return
  completePart(state, found.part, found.written[found.kind.member])
  endBlock(state, found.part)
}

function needText(json: Json, member: string): string {
  const text = asText(json[member])
  if (text === undefined) throw new BrokenAnswer(`A frame has no text in '${member}'.`)
  return text
}

function addTextOf(type: 'text' | 'refusal') {
  return (state: AnswerState, json: Json) => {
    const item = findItemOfKind(state, json, 'message')
    const text = needText(json, 'delta')
    if (item) addPartText(state, findOrStartPart(state, item, json['content_index'], type), text)
  }
}

function completeTextOf(type: 'text' | 'refusal') {
  return (state: AnswerState, json: Json) => {
    const item = findItemOfKind(state, json, 'message')
    if (!item) return
    completePart(state, findOrStartPart(state, item, json['content_index'], type), json[type])
  }
}

function addToCall(type: 'function_call' | 'custom_tool_call') {
  return (state: AnswerState, json: Json) => {
    const item = findItemOfKind(state, json, type)
    const piece = needText(json, 'delta')
    if (item) addArguments(state, item, piece)
  }
}

function completeCall(type: 'function_call' | 'custom_tool_call', member: string) {
  return (state: AnswerState, json: Json) => {
    const item = findItemOfKind(state, json, type)
    if (item) completeArguments(state, item, json[member])
  }
}

function addReasoningText(from: 'summary' | 'content', indexMember: string) {
  return (state: AnswerState, json: Json) => {
    const item = findItemOfKind(state, json, 'reasoning')
    const text = needText(json, 'delta')
    const reasoning = item && chooseReasoning(item, from)
    if (reasoning)
      addReasoningDelta(state, item, reasoning, { index: asIndex(json[indexMember]) ?? 0, text })
  }
}

function completeReasoningText(from: 'summary' | 'content', indexMember: string) {
  return (state: AnswerState, json: Json) => {
    const item = findItemOfKind(state, json, 'reasoning')
    const reasoning = item && chooseReasoning(item, from)
    if (!reasoning) return
    const index = asIndex(json[indexMember]) ?? 0
    completeReasoningPart(state, item, reasoning, { index, text: asText(json['text']) ?? '' })
  }
}

function finish(isIncomplete: boolean) {
  return (state: AnswerState, json: Json) => {
    const response = asObject(json['response'])
    if (!response) throw new BrokenAnswer('The last frame has no response.')
    const status = response['status']
    if (status === 'failed' || status === 'cancelled') fail(state, json)
    readOutput(state, response)
    state.isFinished = true
    state.events.push({
      type: 'finished',
      reason:
        isIncomplete || status === 'incomplete'
          ? reasonOfIncomplete(response)
          : reasonOfComplete(state),
      stopSequence: null,
      usage: readUsage(response),
    })
  }
}

const reasonOfIncomplete = (response: Json): StopReason =>
  asObject(response['incomplete_details'])?.['reason'] === 'content_filter'
    ? 'content_filter'
    : 'max_tokens'

function reasonOfComplete({ hasCalled, hasRefused }: AnswerState): StopReason {
  if (hasCalled) return 'tool_call'
  return hasRefused ? 'refusal' : 'end'
}

function fail(_reading: AnswerState, json: Json) {
  throw toProviderError(readComplaint(objectOf(objectOf(json['response'])['error'])))
}
