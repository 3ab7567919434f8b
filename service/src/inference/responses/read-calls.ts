import type { Json } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { asText } from '#inference/untyped.ts'

import {
  addText,
  endBlock,
  type Item,
  type OpenBlock,
  type Reading,
  restOf,
  startBlock,
} from './reading.ts'

type Call = Item & { type: 'function_call' | 'custom_tool_call' }

/** A custom tool takes any text; elsewhere arguments are JSON, so its text becomes one member. */
const customHead = '{"input":"'
const customTail = '"}'

export function startCall(reading: Reading, written: Json): { name: string; block: OpenBlock } {
  const id = asText(written['call_id']) ?? asText(written['id'])
  const name = asText(written['name'])
  if (!id || !name) throw new BrokenAnswer('A call has no id or no name.')
  reading.hasCalled = true
  const block = startBlock(reading, { type: 'tool_call', id, name })
  if (written['type'] === 'custom_tool_call') addText(reading, block, customHead)
  return { name, block }
}

/** A piece of the arguments of a function, or of the input of a custom tool. */
export function addArguments(reading: Reading, item: Call, piece: string) {
  const isCustom = item.type === 'custom_tool_call'
  addText(reading, item.block, isCustom ? JSON.stringify(piece).slice(1, -1) : piece)
  item.block.text += piece
}

/** The whole arguments, when the call is complete. */
export function readArguments(reading: Reading, item: Call, whole: unknown) {
  const { block } = item
  const rest = restOf(asText(whole) ?? '', block.text, block)
  if (rest !== '') addArguments(reading, item, rest)
}

/** The name is what the caller will call: it may be told again, and not otherwise. */
export function checkName({ name }: Call, written: Json) {
  const again = asText(written['name']) ?? ''
  if (again !== '' && again !== name) throw new BrokenAnswer('A call changes its name.')
}

export function endCall(reading: Reading, { type, block }: Call) {
  if (block.isEnded) return
  if (type === 'custom_tool_call') addText(reading, block, customTail)
  endBlock(reading, block)
}
