import type { AnswerEvent, Json, Reader, SourceFrame, StopReason } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { complaintOf, providerFailed } from '#inference/provider-failure.ts'
import { asIndex, asObject, asText, objectOf } from '#inference/untyped.ts'

import { addArguments, readArguments } from './read-calls.ts'
import { addItem, finishAllItems, finishItem, itemOf, itemOfKind } from './read-items.ts'
import {
  addPartText,
  addReasoning,
  completePart,
  completeReasoning,
  kindOf,
  partOf,
  shownReasoning,
} from './read-texts.ts'
import { endBlock, newReading, type Reading } from './reading.ts'
import { readUsage } from './response-usage.ts'

/**
 * Reads a stream of this format. Each item has its place, `output_index`, and items may overlap. A text
 * comes in pieces, or whole when its part, its item or the response is done; whatever comes whole only
 * adds what the pieces did not have, and must not contradict them.
 */
export function createResponseReader(): Reader {
  const reading = newReading()
  return {
    read(frame) {
      if (reading.isFinished) return []
      readFrame(reading, frame)
      return takeEvents(reading)
    },
    isFinished: () => reading.isFinished,
  }
}

function takeEvents(reading: Reading): AnswerEvent[] {
  const { events } = reading
  reading.events = []
  return events
}

function readFrame(reading: Reading, { event, json }: SourceFrame) {
  const type = asText(json['type']) ?? event
  const error = asObject(json['error'])
  if (type === 'error' || (type === '' && error)) throw providerFailed(complaintOf(error ?? json))
  const read = frames.get(type)
  if (!read) return
  begin(reading, json)
  read(reading, json)
}

/** What a frame of each type means; other types mean nothing to an answer. */
const frames = new Map<string, (reading: Reading, json: Json) => void>(
  Object.entries({
    'response.created': () => undefined,
    'response.queued': () => undefined,
    'response.in_progress': () => undefined,
    'response.output_item.added': addItem,
    'response.output_item.done': finishItem,
    'response.content_part.added': (reading, json) => void readPart(reading, json),
    'response.content_part.done': endPart,
    'response.output_text.delta': addTextOf('text'),
    'response.output_text.done': completeTextOf('text'),
    'response.refusal.delta': addTextOf('refusal'),
    'response.refusal.done': completeTextOf('refusal'),
    'response.function_call_arguments.delta': addToCall('function_call'),
    'response.function_call_arguments.done': completeCall('function_call', 'arguments'),
    'response.custom_tool_call_input.delta': addToCall('custom_tool_call'),
    'response.custom_tool_call_input.done': completeCall('custom_tool_call', 'input'),
    'response.reasoning_summary_text.delta': addThought('summary', 'summary_index'),
    'response.reasoning_summary_text.done': completeThought('summary', 'summary_index'),
    'response.reasoning_text.delta': addThought('content', 'content_index'),
    'response.reasoning_text.done': completeThought('content', 'content_index'),
    'response.completed': finish(false),
    'response.incomplete': finish(true),
    'response.failed': fail,
    'response.cancelled': fail,
  }),
)

function begin(reading: Reading, json: Json) {
  if (reading.hasStarted) return
  reading.hasStarted = true
  const response = objectOf(json['response'])
  reading.events.push({
    type: 'started',
    id: asText(response['id']) ?? '',
    model: asText(response['model']) ?? '',
    usage: readUsage(response),
  })
}

function readPart(reading: Reading, json: Json) {
  const item = itemOf(reading, json)
  const written = asObject(json['part'])
  const kind = written && kindOf(written)
  if (!kind || item.type !== 'message') return undefined
  return { part: partOf(reading, item, json['content_index'], kind.type), written, kind }
}

function endPart(reading: Reading, json: Json) {
  const found = readPart(reading, json)
  if (!found) return
  completePart(reading, found.part, found.written[found.kind.member])
  endBlock(reading, found.part)
}

function needText(json: Json, member: string): string {
  const text = asText(json[member])
  if (text === undefined) throw new BrokenAnswer(`A frame has no text in '${member}'.`)
  return text
}

function addTextOf(type: 'text' | 'refusal') {
  return (reading: Reading, json: Json) => {
    const item = itemOfKind(reading, json, 'message')
    const text = needText(json, 'delta')
    if (item) addPartText(reading, partOf(reading, item, json['content_index'], type), text)
  }
}

function completeTextOf(type: 'text' | 'refusal') {
  return (reading: Reading, json: Json) => {
    const item = itemOfKind(reading, json, 'message')
    if (!item) return
    completePart(reading, partOf(reading, item, json['content_index'], type), json[type])
  }
}

function addToCall(type: 'function_call' | 'custom_tool_call') {
  return (reading: Reading, json: Json) => {
    const item = itemOfKind(reading, json, type)
    const piece = needText(json, 'delta')
    if (item) addArguments(reading, item, piece)
  }
}

function completeCall(type: 'function_call' | 'custom_tool_call', member: string) {
  return (reading: Reading, json: Json) => {
    const item = itemOfKind(reading, json, type)
    if (item) readArguments(reading, item, json[member])
  }
}

function addThought(from: 'summary' | 'content', place: string) {
  return (reading: Reading, json: Json) => {
    const item = itemOfKind(reading, json, 'reasoning')
    const text = needText(json, 'delta')
    const shown = item && shownReasoning(item, from)
    if (shown) addReasoning(reading, item, shown, { index: asIndex(json[place]) ?? 0, text })
  }
}

function completeThought(from: 'summary' | 'content', place: string) {
  return (reading: Reading, json: Json) => {
    const item = itemOfKind(reading, json, 'reasoning')
    const shown = item && shownReasoning(item, from)
    if (!shown) return
    const index = asIndex(json[place]) ?? 0
    completeReasoning(reading, item, shown, { index, text: asText(json['text']) ?? '' })
  }
}

function finish(isCutShort: boolean) {
  return (reading: Reading, json: Json) => {
    const response = asObject(json['response'])
    if (!response) throw new BrokenAnswer('The last frame has no response.')
    const status = response['status']
    if (status === 'failed' || status === 'cancelled') fail(reading, json)
    finishAllItems(reading, response)
    reading.isFinished = true
    reading.events.push({
      type: 'finished',
      reason:
        isCutShort || status === 'incomplete' ? whyIncomplete(response) : whyComplete(reading),
      stopSequence: null,
      usage: readUsage(response),
    })
  }
}

const whyIncomplete = (response: Json): StopReason =>
  asObject(response['incomplete_details'])?.['reason'] === 'content_filter'
    ? 'content_filter'
    : 'max_tokens'

function whyComplete({ hasCalled, hasRefused }: Reading): StopReason {
  if (hasCalled) return 'tool_call'
  return hasRefused ? 'refusal' : 'end'
}

function fail(_reading: Reading, json: Json) {
  throw providerFailed(complaintOf(objectOf(objectOf(json['response'])['error'])))
}
