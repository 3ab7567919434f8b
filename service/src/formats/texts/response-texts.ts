import type { Json, SourceFrame } from '#formats/answer.ts'
import { asIndex, asText, isObject } from '#formats/json-values.ts'

import { createTextReader } from './create-text-reader.ts'
import type { FrameText, TextReader } from './frame-texts.ts'
import { addLogprobs } from './logprobs.ts'
import { readItem, readPart } from './response-items.ts'
import type { TextCollector } from './text-collector.ts'
import { proseGroup, reasoningGroup } from './text-views.ts'
import { isText } from './visit-strings.ts'

/** The items so far by their `output_index`, so that the whole response finds their channels again. */
type Items = Map<number, { id: unknown; type: unknown }>

type Reading = { texts: TextCollector; items: Items }

/** The texts of Responses. A channel is a part of an item: `item0/content0`, `item1/arguments#0`. */
export function createResponseTextReader(before?: string): TextReader {
  const items: Items = new Map()
  const reading = {
    readFrame: (texts: TextCollector, source: SourceFrame) => readFrame({ texts, items }, source),
    readPlain: (texts: TextCollector, body: Json) =>
      readResponse(texts, body, (item, position) => findItem(items, item, position)),
  }
  return createTextReader(reading, before)
}

/**
 * A text comes in deltas, and as a whole when its part, its item and the response are done. What a frame repeats at
 * the start of an item or a response is not continued by deltas, so it is read apart from them.
 */
function readFrame({ texts, items }: Reading, { event, json }: SourceFrame) {
  const type = asText(json['type']) ?? event
  switch (type) {
    case 'response.created':
    case 'response.queued':
    case 'response.in_progress':
      return readMember(texts, json, 'response', (response) =>
        readResponse(texts, response, () => texts.newChannel()),
      )
    case 'response.completed':
    case 'response.incomplete':
      readMember(texts, json, 'response', (response) =>
        readResponse(texts, response, (item, position) => findItem(items, item, position)),
      )
      return texts.endAll()
    case 'response.output_item.added':
      noteItem(items, json)
      return readMember(texts, json, 'item', (item) => readApart(texts, item, readItem))
    case 'response.output_item.done':
      noteItem(items, json)
      readMember(texts, json, 'item', (item) => readItem(texts, pathOf(items, json), item))
      return texts.endAt(pathOf(items, json))
    case 'response.content_part.added':
    case 'response.reasoning_summary_part.added':
      return readMember(texts, json, 'part', (part) => readApart(texts, part, readPart))
    case 'response.content_part.done':
      return readDonePart({ texts, items }, json, 'content')
    case 'response.reasoning_summary_part.done':
      return readDonePart({ texts, items }, json, 'summary')
    default:
      return readText({ texts, items }, type, json)
  }
}

/** Reads one object of a frame; whatever else the frame says are texts of their own. */
function readMember(
  texts: TextCollector,
  json: Json,
  member: string,
  read: (value: Json) => unknown,
) {
  texts.addMembers(json, (name, value) => {
    if (name !== member || !isObject(value)) return name === 'obfuscation'
    read(value)
    return true
  })
}

function readApart(
  texts: TextCollector,
  value: Json,
  read: (texts: TextCollector, path: string, value: Json) => unknown,
) {
  const path = texts.newChannel()
  read(texts, path, value)
  texts.endAt(path)
}

function readDonePart({ texts, items }: Reading, json: Json, list: 'content' | 'summary') {
  const path = `${pathOf(items, json)}/${list}${asIndex(json[`${list}_index`]) ?? 0}`
  readMember(texts, json, 'part', (part) => readPart(texts, path, part))
  texts.endAt(path)
}

/** Members that repeat what the caller sent, or are chosen from a fixed list. */
const settings: ReadonlySet<string> = new Set([
  'incomplete_details',
  'instructions',
  'metadata',
  'prompt',
  'prompt_cache_key',
  'prompt_cache_retention',
  'reasoning',
  'safety_identifier',
  'service_tier',
  'text',
  'tool_choice',
  'tools',
  'truncation',
  'usage',
  'user',
])

function readResponse(
  texts: TextCollector,
  response: Json,
  pathAt: (item: Json, position: number) => string,
) {
  texts.addMembers(response, (name, value) => {
    if (name !== 'output' || !Array.isArray(value)) return settings.has(name)
    for (const [position, item] of value.entries()) {
      if (!isObject(item)) texts.addStrings('output', item)
      else readItem(texts, pathAt(item, position), item)
    }
    return true
  })
}

/** How the text of each kind of delta is called in its item, in the frame that counts it, and when it is done. */
type Place = { part: string; index?: string; whole: string; isJson?: boolean; group?: string }

const places = new Map<string, Place>([
  ['output_text', { part: 'content', index: 'content_index', whole: 'text', group: proseGroup }],
  ['refusal', { part: 'content', index: 'content_index', whole: 'refusal' }],
  [
    'reasoning_text',
    { part: 'content', index: 'content_index', whole: 'text', group: reasoningGroup },
  ],
  [
    'reasoning_summary_text',
    { part: 'summary', index: 'summary_index', whole: 'text', group: reasoningGroup },
  ],
  ['function_call_arguments', { part: 'arguments', whole: 'arguments', isJson: true }],
  ['mcp_call_arguments', { part: 'arguments', whole: 'arguments', isJson: true }],
  ['custom_tool_call_input', { part: 'input', whole: 'input' }],
])

/** A delta of a text, the whole text when it is done, or a frame of an unknown type. */
function readText({ texts, items }: Reading, type: string, json: Json) {
  const [, kind = '', stage = ''] = /^response\.(.+)\.(delta|done)$/.exec(type) ?? []
  const place = places.get(kind)
  const path = pathOf(items, json)
  const channel = place ? channelOf(path, place, json) : `${path}/${kind}${indexesOf(json)}`
  const add = (...text: [string, unknown, FrameText['kind']]) =>
    place?.isJson ? texts.addJson(...text) : texts.add(...text, place?.group)
  texts.addMembers(json, (name, value) => {
    if (name === 'obfuscation') return true
    if (name === 'logprobs' && place) {
      return addLogprobs(texts, stage === 'delta' ? `${channel}/logprobs` : null, value)
    }
    if (stage === 'delta' && name === 'delta') {
      if (kind === 'audio') return texts.noteUnreadable()
      return isObject(value) ? addPieces(texts, channel, value) : add(channel, value, 'delta')
    }
    return place !== undefined && stage === 'done' && name === place.whole
      ? add(channel, value, 'whole')
      : false
  })
}

function channelOf(path: string, { part, index }: Place, json: Json): string {
  return index === undefined ? `${path}/${part}` : `${path}/${part}${asIndex(json[index]) ?? 0}`
}

/** All numbers of a frame but its own: a delta of an unknown kind is continued by those with the same numbers. */
const indexesOf = (json: Json): string =>
  Object.keys(json)
    .filter((name) => name.endsWith('_index') && name !== 'output_index')
    .map((name) => `.${String(json[name])}`)
    .join('')

/** Some deltas are objects with a piece of several texts, such as the two outputs of a command. */
function addPieces(texts: TextCollector, channel: string, delta: Json): true {
  texts.addMembers(
    delta,
    (name, value) => isText(name, value) && texts.add(`${channel}.${name}`, value, 'delta'),
  )
  return true
}

function noteItem(items: Items, { item, output_index }: Json) {
  const index = asIndex(output_index)
  if (!isObject(item)) return
  const isKnown = items.values().some(({ id }) => id !== undefined && id === item['id'])
  if (index === undefined && isKnown) return
  items.set(index ?? freeIndex(items), { id: item['id'], type: item['type'] })
}

/** The item that a frame is about: by its place, or else by its id. */
function pathOf(items: Items, { output_index, item_id, item }: Json): string {
  const id = item_id ?? (isObject(item) ? item['id'] : undefined)
  return `item${asIndex(output_index) ?? indexOfId(items, id) ?? 0}`
}

function indexOfId(items: Items, wanted: unknown): number | undefined {
  if (wanted === undefined) return undefined
  for (const [index, { id }] of items) if (id === wanted) return index
  return undefined
}

/** An item of the whole response: by its id, or else by its place if an item of its kind is there. */
function findItem(items: Items, item: Json, position: number): string {
  const { id, type } = item
  const known = indexOfId(items, id)
  if (known !== undefined) return `item${known}`
  const there = items.get(position)
  if (there?.type === type) return `item${position}`
  const index = there ? freeIndex(items) : position
  items.set(index, { id, type })
  return `item${index}`
}

function freeIndex(items: Items): number {
  let index = items.size
  while (items.has(index)) index += 1
  return index
}
