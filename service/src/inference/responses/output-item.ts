import type { Block, Json } from '#inference/answer.ts'
import { packOpaque } from '#inference/opaque.ts'
import type { Answering } from '#inference/protocol.ts'
import type { Opaque } from '#inference/turn.ts'

import { itemId } from './response-object.ts'

/** One block of the answer, which is one item of the output: its number is its place. */
export type OutputItem = {
  id: string
  index: number
  block: Block
  text: string
  opaque: Opaque | null
  isDone: boolean
}

const prefixes = { text: 'msg', refusal: 'msg', tool_call: 'fc', reasoning: 'rs' } as const

export const newItem = (answering: Answering, index: number, block: Block): OutputItem => ({
  id: itemId(prefixes[block.type], answering, index),
  index,
  block,
  text: '',
  opaque: null,
  isDone: false,
})

/** The item as it stands: empty when it is added, whole when it is done. */
export function writeItem(item: OutputItem): Json {
  const { id, block, text, opaque, isDone } = item
  const status = isDone ? 'completed' : 'in_progress'
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

export const writePart = (type: 'text' | 'refusal', text: string): Json =>
  type === 'text'
    ? { type: 'output_text', text, annotations: [], logprobs: [] }
    : { type: 'refusal', refusal: text }

const writeOpaque = (opaque: Opaque) =>
  opaque.origin === 'responses' ? opaque.data : packOpaque(opaque)
