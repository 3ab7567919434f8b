import type { Json, SourceFrame } from '#formats/answer.ts'
import { asText, isObject, listOf } from '#formats/json-values.ts'

import { createTextReader } from './create-text-reader.ts'
import type { FrameText, TextReader } from './frame-texts.ts'
import { addLogprobs } from './logprobs.ts'
import type { TextCollector } from './text-collector.ts'
import { prefillGroup } from './text-views.ts'
import { isText } from './visit-strings.ts'

/** The index of the call that a delta belongs to, given the ids of the calls so far. */
type FindCallIndex = (
  call: Json,
  position: number,
  knownCalls: () => ReadonlyMap<number, string>,
) => number

type Reading = {
  texts: TextCollector
  callIndexOf(call: Json, position: number): number
  /** By choice, the text that grows at the moment. */
  growing: Map<string, string>
  /** The names of calls so far, by their channel. */
  names: Map<string, string>
}

/** The texts of Chat Completions. A channel is a member of a choice: `choice0/content`, `choice0/tool1/arguments#0`. */
export function createChatTextReader(findCallIndex: FindCallIndex, before?: string): TextReader {
  const ids = new Map<number, string>()
  const callIndexOf = (call: Json, position: number) => {
    const index = findCallIndex(call, position, () => ids)
    if (!ids.get(index)) ids.set(index, asText(call['id']) ?? '')
    return index
  }
  const state = {
    callIndexOf,
    growing: new Map<string, string>(),
    names: new Map<string, string>(),
  }
  const read = (texts: TextCollector, body: Json) => readBody({ texts, ...state }, body)
  return createTextReader(
    { readFrame: (texts, { json }: SourceFrame) => read(texts, json), readPlain: read },
    before,
  )
}

function readBody(reading: Reading, body: Json) {
  const { texts } = reading
  texts.addMembers(body, (name, value) => {
    switch (name) {
      case 'choices':
        return Array.isArray(value) && readChoices(reading, value)
      case 'usage':
      case 'service_tier':
      case 'system_fingerprint':
      // Random padding against attackers who measure the length of frames.
      case 'obfuscation':
        return true
      default:
        return false
    }
  })
}

function readChoices(reading: Reading, choices: readonly unknown[]) {
  for (const choice of listOf(choices)) {
    if (isObject(choice)) readChoice(reading, choice)
    else reading.texts.addStrings('choices', choice)
  }
  return true
}

function readChoice(reading: Reading, choice: Json) {
  const { texts } = reading
  const path = `choice${Number(choice['index'] ?? 0)}`
  const { delta, message } = choice
  if (isObject(delta)) readMessage(reading, path, delta, 'delta')
  // A whole message beside the deltas repeats them, this one included.
  if (isObject(message)) readMessage(reading, path, message, 'whole')
  texts.addMembers(choice, (name, value) => {
    switch (name) {
      case 'delta':
      case 'message':
        return isObject(value)
      case 'logprobs':
        return isObject(value) && readLogprobs(texts, path, value, isObject(delta))
      case 'finish_reason':
        return true
      default:
        return false
    }
  })
  if (asText(choice['finish_reason'])) texts.endAt(path)
}

function readLogprobs(texts: TextCollector, path: string, logprobs: Json, isDelta: boolean) {
  texts.addMembers(logprobs, (name, value) =>
    addLogprobs(texts, isDelta ? `${path}/logprobs.${name}` : null, value),
  )
  return true
}

/** A delta or a whole message: they have the same members. */
function readMessage(reading: Reading, path: string, message: Json, kind: FrameText['kind']) {
  const { texts } = reading
  texts.addMembers(message, (name, value) => {
    switch (name) {
      case 'role':
      case 'reasoning_signature':
        return typeof value === 'string'
      case 'tool_calls':
        return Array.isArray(value) && readCalls(reading, path, value, kind)
      case 'function_call':
        return (
          isObject(value) &&
          readCall(reading, { path: `${path}/function`, call: { function: value }, kind })
        )
      default: {
        const channel = `${path}/${name}`
        const isGrowing = kind === 'delta' && typeof value === 'string' && value !== ''
        if (isGrowing && proseMembers.has(name)) endBefore(reading, path, channel)
        const group = name === 'content' ? prefillGroup(path) : undefined
        return addGrowing({ texts, path: channel, name, kind, depth: 0, group }, value)
      }
    }
  })
}

/** The names under which servers send reasoning and answers. */
const proseMembers: ReadonlySet<string> = new Set([
  'reasoning',
  'reasoning_content',
  'content',
  'refusal',
])

/**
 * Chat Completions does not say where a text ends. Most models write one after the other, reasoning, answer, calls, so a text
 * is taken to end where the next one begins: what follows does not wait for more of it. If there is more after all, it goes
 * on in a channel of its own (`TextCollector.addResumable`).
 */
function endBefore({ texts, growing }: Reading, choice: string, next: string) {
  if (growing.get(choice) === next) return
  growing.set(choice, next)
  texts.endOthers(choice, next)
}

function readCalls(
  reading: Reading,
  path: string,
  calls: readonly unknown[],
  kind: FrameText['kind'],
) {
  const { texts, callIndexOf } = reading
  for (const [position, call] of calls.entries()) {
    if (!isObject(call)) {
      texts.addStrings('tool_calls', call)
      continue
    }
    const callPath = `${path}/tool${callIndexOf(call, position)}`
    if (kind === 'delta') endBefore(reading, path, callPath)
    readCall(reading, { path: callPath, call, kind })
  }
  return true
}

type Call = { path: string; call: Json; kind: FrameText['kind'] }

/** The input of a custom tool is text and not JSON. */
function readCall({ texts, names }: Reading, { path, call, kind }: Call) {
  const add = (channel: string, text: string) =>
    kind === 'delta' ? texts.addResumable(channel, text) : texts.add(channel, text, kind)
  texts.addMembers(call, (member, called) => {
    if ((member !== 'function' && member !== 'custom') || !isObject(called)) return false
    texts.addMembers(called, (name, value) => {
      if (typeof value !== 'string') return false
      switch (name) {
        case 'name': {
          const channel = `${path}/name`
          return isRepeatedName(names, channel, value, kind) || add(channel, value)
        }
        case 'arguments':
          if (value !== '') texts.endAt(`${path}/name`)
          return texts.addJson(`${path}/arguments`, value, kind)
        case 'input':
          if (value !== '') texts.endAt(`${path}/name`)
          return add(`${path}/input`, value)
        default:
          return false
      }
    })
    return true
  })
  return true
}

/** A name is sent once, again in each delta, or in pieces, which clients join. */
function isRepeatedName(
  names: Map<string, string>,
  channel: string,
  name: string,
  kind: FrameText['kind'],
): boolean {
  if (kind === 'whole') return false
  const before = names.get(channel) ?? ''
  if (before === name) return true
  names.set(channel, before + name)
  return false
}

const depthMax = 8
/** Texts that are not divided over deltas: sent once, or repeated in each. */
const undivided: ReadonlySet<string> = new Set(['name', 'format'])

type Growing = {
  texts: TextCollector
  path: string
  name: string
  kind: FrameText['kind']
  depth: number
  /** Of a text that a person reads. */
  group?: string | undefined
}

/**
 * A member of a delta that is no call. Clients join the texts of all deltas, also in members of members and in items of
 * lists that have an index, so a text may be divided over them.
 */
function addGrowing(growing: Growing, value: unknown): boolean {
  const { texts, path, name, kind, depth, group } = growing
  if (typeof value === 'string') {
    if (undivided.has(name) || !isText(name, value)) return false
    return kind === 'delta'
      ? texts.addResumable(path, value, group)
      : texts.add(path, value, kind, group)
  }
  if (depth === depthMax || !hasGrowing(name, value)) return false
  for (const [key, inner] of entriesOf(value)) {
    const member = { texts, path: `${path}.${key}`, name: key, kind, depth: depth + 1 }
    if (!addGrowing(member, inner)) texts.addStrings(key, inner)
  }
  return true
}

/** Lists whose items have an index, or a place that clients take for one. */
const joinedByPlace: ReadonlySet<string> = new Set(['reasoning_details'])

const hasGrowing = (name: string, value: unknown) =>
  isObject(value) ||
  (Array.isArray(value) &&
    value.length > 0 &&
    value.every((item) => isObject(item) && (hasIndex(item) || joinedByPlace.has(name))))

const hasIndex = (item: Json) => typeof item['index'] === 'number'

const entriesOf = (value: unknown): [string, unknown][] =>
  isObject(value)
    ? Object.entries(value)
    : listOf(value)
        .filter(isObject)
        .map((item, place) => [String(hasIndex(item) ? item['index'] : place), item])
