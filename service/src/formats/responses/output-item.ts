import type { Block, Json } from '#formats/answer.ts'
import type { Answering } from '#formats/format.ts'
import { packOpaqueState } from '#formats/opaque-state.ts'
import type { OpaqueState } from '#formats/turn.ts'

import { itemId } from './response-object.ts'

/** One block of the answer, which is one item of the output; `index` is its `output_index`. */
export type OutputItem = {
  id: string
  index: number
  block: Block
  text: string
  opaque: OpaqueState | null
  isDone: boolean
  /** The model has not ended it. */
  isCut: boolean
}

const prefixes = { text: 'msg', refusal: 'msg', tool_call: 'fc', reasoning: 'rs' } as const

export const newItem = (answering: Answering, index: number, block: Block): OutputItem => ({
  id: itemId(prefixes[block.type], answering, index),
  index,
  block,
  text: '',
  opaque: null,
  isDone: false,
  isCut: false,
})

/** The item in its current state: empty when it is added, complete when it is done. */
export function writeItem(item: OutputItem): Json {
  const { id, block, text, opaque, isDone } = item
  const status = statusOf(item)
  switch (block.type) {
    case 'text':
    case 'refusal':
      return {
        id,
        type: 'message',
        status,
        role: 'assistant',
        content: isDone ? [writePart(block.type, text)] : [],
      }
    case 'tool_call':
      return {
        id,
        type: 'function_call',
        status,
        arguments: text,
        call_id: block.id,
        name: block.name,
      }
    case 'reasoning':
      return {
        id,
        type: 'reasoning',
        status,
        summary: text === '' ? [] : [{ type: 'summary_text', text }],
        ...(opaque && { encrypted_content: writeOpaque(opaque) }),
      }
  }
}

function statusOf({ isDone, isCut }: OutputItem): string {
  if (isCut) return 'incomplete'
  return isDone ? 'completed' : 'in_progress'
}

export const writePart = (type: 'text' | 'refusal', text: string): Json =>
  type === 'text'
    ? { type: 'output_text', text, annotations: [], logprobs: [] }
    : { type: 'refusal', refusal: text }

const writeOpaque = (opaque: OpaqueState) =>
  opaque.origin === 'responses' ? opaque.data : packOpaqueState(opaque)
