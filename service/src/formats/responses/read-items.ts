import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asIndex, asObject, asText, listOf } from '#formats/json-values.ts'

import { endBlock, type Item, type AnswerState, startBlock } from './answer-state.ts'
import { checkName, endCall, completeArguments, startCall } from './read-calls.ts'
import { completeParts, completeReasoning } from './read-texts.ts'

/** The item that a frame is about. */
export function findItem(state: AnswerState, json: Json): Item {
  const index = asIndex(json['output_index'])
  const item = index === undefined ? findItemById(state, json['item_id']) : state.items.get(index)
  if (!item) throw new BrokenAnswer('A frame speaks of an item that never started.')
  return item
}

/** The item of a frame that only fits one kind of item; undefined for an unknown kind. */
export function findItemOfKind<Kind extends string>(state: AnswerState, json: Json, kind: Kind) {
  const item = findItem(state, json)
  if (item.type === 'other') return undefined
  if (item.type !== kind) throw new BrokenAnswer(`A frame for a ${kind} speaks of a ${item.type}.`)
  return item as Extract<typeof item, { type: Kind }>
}

function findItemById(state: AnswerState, id: unknown): Item | undefined {
  if (typeof id !== 'string') return undefined
  return state.items.values().find((item) => item.id === id)
}

/** `response.output_item.added`. Text that the item has already is ignored: it comes again when the item is done. */
export function readItemAdded(state: AnswerState, json: Json) {
  const written = needItem(json)
  const index = asIndex(json['output_index']) ?? freeIndex(state)
  const known = state.items.get(index)
  if (!known) return void state.items.set(index, startItem(state, written))
  if (known.type !== typeOf(written)) throw new BrokenAnswer('Two items have the same place.')
}

/** `response.output_item.done`. */
export function readItemDone(state: AnswerState, json: Json) {
  const written = needItem(json)
  const index = asIndex(json['output_index'])
  const known = index === undefined ? findItemById(state, written['id']) : state.items.get(index)
  completeItem(state, known ?? startUnseenItem(state, written, index), written)
}

/** The output of a finished response: some servers send texts only there and no deltas. */
export function readOutput(state: AnswerState, response: Json) {
  for (const [index, value] of listOf(response['output']).entries()) {
    const written = asObject(value)
    if (!written) continue
    const item = findItemById(state, written['id']) ?? findSameKindAt(state, index, written)
    completeItem(state, item ?? startUnseenItem(state, written, undefined), written)
  }
  for (const item of state.items.values()) endItem(state, item, {})
}

function findSameKindAt({ items }: AnswerState, index: number, written: Json): Item | undefined {
  const item = items.get(index)
  return item?.type === typeOf(written) ? item : undefined
}

function startUnseenItem(state: AnswerState, written: Json, index: number | undefined): Item {
  const item = startItem(state, written)
  state.items.set(index ?? freeIndex(state), item)
  return item
}

function freeIndex({ items }: AnswerState): number {
  let index = items.size
  while (items.has(index)) index++
  return index
}

function needItem(json: Json): Json {
  const item = asObject(json['item'])
  if (!item) throw new BrokenAnswer('A frame about an item has no item.')
  return item
}

function typeOf(written: Json): Item['type'] {
  switch (written['type']) {
    case 'message':
    case 'function_call':
    case 'custom_tool_call':
    case 'reasoning':
      return written['type']
    default:
      return 'other'
  }
}

function startItem(state: AnswerState, written: Json): Item {
  const type = typeOf(written)
  const common = { id: asText(written['id']) }
  switch (type) {
    case 'message':
      return { ...common, type, parts: new Map() }
    case 'reasoning':
      return { ...common, type, block: null, reasoning: null }
    case 'function_call':
    case 'custom_tool_call':
      return { ...common, type, ...startCall(state, written) }
    case 'other':
      return { ...common, type }
  }
}

/** Takes the whole item. Whatever was read of it before must not differ. */
function completeItem(state: AnswerState, item: Item, written: Json) {
  if (item.type !== typeOf(written)) {
    throw new BrokenAnswer('An item ends as another kind than it started.')
  }
  if (item.type === 'function_call' || item.type === 'custom_tool_call') checkName(item, written)
  if (item.type === 'message') completeParts(state, item, written['content'])
  if (item.type === 'reasoning') completeReasoning(state, item, written)
  if (item.type === 'function_call') completeArguments(state, item, written['arguments'])
  if (item.type === 'custom_tool_call') completeArguments(state, item, written['input'])
  endItem(state, item, written)
}

/** Does nothing the second time. */
function endItem(state: AnswerState, item: Item, written: Json) {
  switch (item.type) {
    case 'message':
      for (const part of item.parts.values()) endBlock(state, part)
      return
    case 'function_call':
    case 'custom_tool_call':
      return endCall(state, item)
    case 'reasoning':
      return endReasoning(state, item, written)
    case 'other':
      return undefined
  }
}

function endReasoning(state: AnswerState, item: Item & { type: 'reasoning' }, written: Json) {
  const data = asText(written['encrypted_content'])
  if (data) item.block ??= startBlock(state, { type: 'reasoning' })
  if (!item.block) return
  const id = asText(written['id']) ?? null
  endBlock(state, item.block, data ? { origin: 'responses', kind: 'encrypted', data, id } : null)
}
