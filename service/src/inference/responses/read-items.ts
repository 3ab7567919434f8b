import type { Json } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { asIndex, asObject, asText, listOf } from '#inference/untyped.ts'

import { checkName, endCall, readArguments, startCall } from './read-calls.ts'
import { readParts, readReasoningTexts } from './read-texts.ts'
import { endBlock, type Item, type Reading, startBlock } from './reading.ts'

/** The item that a frame speaks about. */
export function itemOf(reading: Reading, json: Json): Item {
  const index = asIndex(json['output_index'])
  const item = index === undefined ? itemById(reading, json['item_id']) : reading.items.get(index)
  if (!item) throw new BrokenAnswer('A frame speaks of an item that never started.')
  return item
}

/** The item of a frame that only makes sense for one kind; undefined for kinds we pass over. */
export function itemOfKind<Kind extends string>(reading: Reading, json: Json, kind: Kind) {
  const item = itemOf(reading, json)
  if (item.type === 'other') return undefined
  if (item.type !== kind) throw new BrokenAnswer(`A frame for a ${kind} speaks of a ${item.type}.`)
  return item as Extract<typeof item, { type: Kind }>
}

function itemById(reading: Reading, id: unknown): Item | undefined {
  if (typeof id !== 'string') return undefined
  return reading.items.values().find((item) => item.id === id)
}

/** `response.output_item.added`. What it already has of a text comes again when it is done. */
export function addItem(reading: Reading, json: Json) {
  const written = needItem(json)
  const index = asIndex(json['output_index']) ?? nextIndex(reading)
  const known = reading.items.get(index)
  if (!known) return void reading.items.set(index, startItem(reading, written))
  if (known.type !== typeOf(written)) throw new BrokenAnswer('Two items have the same place.')
}

/** `response.output_item.done`. */
export function finishItem(reading: Reading, json: Json) {
  const written = needItem(json)
  const index = asIndex(json['output_index'])
  const known = index === undefined ? itemById(reading, written['id']) : reading.items.get(index)
  completeItem(reading, known ?? addUnseen(reading, written, index), written)
}

/** The output of a finished response: some servers say only there what others say in pieces. */
export function finishAllItems(reading: Reading, response: Json) {
  for (const [index, value] of listOf(response['output']).entries()) {
    const written = asObject(value)
    if (!written) continue
    const item = itemById(reading, written['id']) ?? sameKindAt(reading, index, written)
    completeItem(reading, item ?? addUnseen(reading, written, undefined), written)
  }
  for (const item of reading.items.values()) endItem(reading, item, {})
}

function sameKindAt({ items }: Reading, index: number, written: Json): Item | undefined {
  const item = items.get(index)
  return item?.type === typeOf(written) ? item : undefined
}

function addUnseen(reading: Reading, written: Json, index: number | undefined): Item {
  const item = startItem(reading, written)
  reading.items.set(index ?? nextIndex(reading), item)
  return item
}

function nextIndex({ items }: Reading): number {
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

function startItem(reading: Reading, written: Json): Item {
  const type = typeOf(written)
  const common = { id: asText(written['id']) }
  switch (type) {
    case 'message':
      return { ...common, type, parts: new Map() }
    case 'reasoning':
      return { ...common, type, block: null, shown: null }
    case 'function_call':
    case 'custom_tool_call':
      return { ...common, type, ...startCall(reading, written) }
    case 'other':
      return { ...common, type }
  }
}

/** An item as a whole, also when it was told before: then it must say the same. */
function completeItem(reading: Reading, item: Item, written: Json) {
  if (item.type !== typeOf(written)) {
    throw new BrokenAnswer('An item ends as another kind than it started.')
  }
  if (item.type === 'function_call' || item.type === 'custom_tool_call') checkName(item, written)
  if (item.type === 'message') readParts(reading, item, written['content'])
  if (item.type === 'reasoning') readReasoningTexts(reading, item, written)
  if (item.type === 'function_call') readArguments(reading, item, written['arguments'])
  if (item.type === 'custom_tool_call') readArguments(reading, item, written['input'])
  endItem(reading, item, written)
}

/** Does nothing the second time. */
function endItem(reading: Reading, item: Item, written: Json) {
  switch (item.type) {
    case 'message':
      for (const part of item.parts.values()) endBlock(reading, part)
      return
    case 'function_call':
    case 'custom_tool_call':
      return endCall(reading, item)
    case 'reasoning':
      return endReasoning(reading, item, written)
    case 'other':
      return undefined
  }
}

function endReasoning(reading: Reading, item: Item & { type: 'reasoning' }, written: Json) {
  const data = asText(written['encrypted_content'])
  if (data) item.block ??= startBlock(reading, { type: 'reasoning' })
  if (!item.block) return
  const id = asText(written['id']) ?? null
  endBlock(reading, item.block, data ? { origin: 'responses', kind: 'encrypted', data, id } : null)
}
