import type { Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asText } from '#formats/json-values.ts'

import {
  addText,
  endBlock,
  type Item,
  type OpenBlock,
  type AnswerState,
  missingText,
  startBlock,
} from './answer-state.ts'

type Call = Item & { type: 'function_call' | 'custom_tool_call' }

/** The input of a custom tool is any text; arguments elsewhere are JSON, so the text becomes one member. */
const customHead = '{"input":"'
const customTail = '"}'

export function startCall(state: AnswerState, written: Json): { name: string; block: OpenBlock } {
  const id = asText(written['call_id']) ?? asText(written['id'])
  const name = asText(written['name'])
  if (!id || !name) throw new BrokenAnswer('A call has no id or no name.')
  state.hasCalled = true
  const block = startBlock(state, { type: 'tool_call', id, name })
  if (written['type'] === 'custom_tool_call') addText(state, block, customHead)
  return { name, block }
}

/** Appends a delta of the arguments of a function, or of the input of a custom tool. */
export function addArguments(state: AnswerState, item: Call, piece: string) {
  const isCustom = item.type === 'custom_tool_call'
  addText(state, item.block, isCustom ? JSON.stringify(piece).slice(1, -1) : piece)
  item.block.text += piece
}

export function completeArguments(state: AnswerState, item: Call, whole: unknown) {
  const { block } = item
  const rest = missingText(asText(whole) ?? '', block.text, block)
  if (rest !== '') addArguments(state, item, rest)
}

/** The caller will call the function by its name, so a later frame must not change it. */
export function checkName({ name }: Call, written: Json) {
  const repeated = asText(written['name']) ?? ''
  if (repeated !== '' && repeated !== name) throw new BrokenAnswer('A call changes its name.')
}

export function endCall(state: AnswerState, { type, block }: Call) {
  if (block.isEnded) return
  if (type === 'custom_tool_call') addText(state, block, customTail)
  endBlock(state, block)
}
