import { type Json, noUsage, type OutFrame } from '#formats/answer.ts'
import { asObject, asText, isObject, listOf } from '#formats/json-values.ts'

import { finishReasonOf } from './chat-finish-reason.ts'
import { writeChatUsage } from './chat-usage.ts'
import { toolCallIndex } from './tool-call-index.ts'

type Choice = { members: Json; message: Json; logprobs: Json | null; finishReason: string }

/** All chunks of a finished stream as one chat completion. */
export function foldChatStream(frames: readonly OutFrame[]): Json {
  const members: Json = {}
  const choices = new Map<number, Choice>()
  let usage: Json | undefined
  for (const { data } of frames) {
    if (data === '[DONE]') continue
    usage = asObject(data['usage']) ?? usage
    keepMembers(members, data, streamOnly)
    for (const choice of listOf(data['choices'])) {
      if (isObject(choice)) addChoice(choices, choice)
    }
  }
  const { id = '', created = 0, model = '', ...others } = members
  return {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [...choices].sort(([one], [other]) => one - other).map(toChoice),
    usage: usage ?? writeChatUsage(noUsage),
    ...others,
  }
}

/** Members of a chunk that a plain answer does not have, or has in another form. */
const streamOnly = new Set(['object', 'choices', 'usage', 'obfuscation', '__proto__'])
const choiceMembers = new Set([
  'index',
  'delta',
  'message',
  'logprobs',
  'finish_reason',
  '__proto__',
])

/** Chunks repeat their members; an empty value does not replace one that is there. */
function keepMembers(kept: Json, data: Json, leftOut: ReadonlySet<string>) {
  for (const [name, value] of Object.entries(data)) {
    if (leftOut.has(name)) continue
    const isEmpty = value === null || value === '' || value === 0
    if (!isEmpty || !Object.hasOwn(kept, name)) kept[name] = value
  }
}

function addChoice(choices: Map<number, Choice>, choice: Json) {
  const index = typeof choice['index'] === 'number' ? choice['index'] : 0
  const known = choices.get(index)
  const folded = known ?? { members: {}, message: {}, logprobs: null, finishReason: 'stop' }
  choices.set(index, folded)
  const whole = Object.keys(folded.message).length === 0 ? asObject(choice['message']) : undefined
  const delta = asObject(choice['delta']) ?? whole ?? {}
  mergeDelta(folded.message, withCallIndexes(delta, folded.message))
  const logprobs = asObject(choice['logprobs'])
  if (logprobs) mergeDelta((folded.logprobs ??= { content: null, refusal: null }), logprobs)
  folded.finishReason = finishReasonOf(choice) ?? folded.finishReason
  keepMembers(folded.members, choice, choiceMembers)
}

function withCallIndexes(delta: Json, message: Json): Json {
  if (!Array.isArray(delta['tool_calls'])) return delta
  const known = () =>
    new Map(
      listOf(message['tool_calls'])
        .filter(isObject)
        .map((call) => [call['index'] as number, asText(call['id']) ?? '']),
    )
  const calls = delta['tool_calls'].filter(isObject).map((call, position) => ({
    ...call,
    index: toolCallIndex(call, position, known),
  }))
  return { ...delta, tool_calls: calls }
}

function toChoice([index, choice]: [number, Choice]): Json {
  const { role: _role, content, refusal, tool_calls, ...others } = choice.message
  const calls = listOf(tool_calls).filter(isObject)
  const isSilent = calls.length > 0 || Boolean(refusal) || isObject(others['function_call'])
  return {
    index,
    message: {
      role: 'assistant',
      content: content || (isSilent ? null : ''),
      refusal: refusal || null,
      ...others,
      ...(calls.length > 0 && { tool_calls: toCalls(calls) }),
    },
    logprobs: choice.logprobs,
    finish_reason: choice.finishReason,
    ...choice.members,
  }
}

const toCalls = (calls: Json[]) =>
  calls
    .toSorted((one, other) => Number(one['index']) - Number(other['index']))
    .map(({ index: _index, ...call }) => ({ type: 'function', ...call }))

/** Texts that are not split over deltas: sent once, or repeated in each. */
const unsplitMembers = new Set(['id', 'type', 'role', 'name', 'format'])

/**
 * Adds a delta to the sum of the earlier ones: texts are joined, items of lists are merged by their `index` or
 * else appended, and all other values are replaced. Works for unknown members too.
 */
function mergeDelta(whole: Json, delta: Json) {
  for (const [name, value] of Object.entries(delta)) {
    if (name === '__proto__' || value === null || value === undefined) continue
    whole[name] = mergeValue(name, whole[name], value)
  }
}

function mergeValue(name: string, known: unknown, value: unknown): unknown {
  if (typeof value === 'string' && typeof known === 'string') {
    return unsplitMembers.has(name) ? known || value : known + value
  }
  if (Array.isArray(value)) return mergeList(Array.isArray(known) ? known : [], value)
  if (!isObject(value)) return value
  // The delta belongs to its frame, so the sum must be a copy.
  const merged = isObject(known) ? known : {}
  mergeDelta(merged, value)
  return merged
}

function mergeList(known: unknown[], values: readonly unknown[]): unknown[] {
  for (const value of values) {
    const position = findSameIndex(known, value)
    if (position === -1) known.push(hasIndex(value) ? mergeValue('', undefined, value) : value)
    else known[position] = mergeValue('', known[position], value)
  }
  return known
}

const hasIndex = (value: unknown): value is Json =>
  isObject(value) && typeof value['index'] === 'number'

const findSameIndex = (known: readonly unknown[], value: unknown): number =>
  hasIndex(value)
    ? known.findLastIndex((item) => isObject(item) && item['index'] === value['index'])
    : -1
