import type { AnswerEvent, Block, Json } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asText, objectOf } from '#formats/json-values.ts'
import type { OpaqueState } from '#formats/turn.ts'

/** One block of a stream, from its start to its end. */
export type BlockReader = {
  /** False for a block that only the provider understands, such as its own web search: it has no events. */
  isKnown: boolean
  start(): AnswerEvent[]
  read(delta: Json): AnswerEvent[]
  /** No events the second time. */
  end(): AnswerEvent[]
}

/** The block that each type of delta belongs to, and the member with its text. Other types are ignored. */
const deltas = new Map<unknown, { of: Block['type']; member: string }>([
  ['text_delta', { of: 'text', member: 'text' }],
  ['thinking_delta', { of: 'reasoning', member: 'thinking' }],
  ['signature_delta', { of: 'reasoning', member: 'signature' }],
  ['input_json_delta', { of: 'tool_call', member: 'partial_json' }],
])

/** Reads one block. The signature of its reasoning becomes an event at its end, whenever it came. */
export function createBlockReader(index: number, opening: Json): BlockReader {
  const block = readBlock(opening)
  if (!block) return { isKnown: false, start: () => [], read: () => [], end: () => [] }
  let opaque = readOpaque(opening)
  let hasText = false
  let isOpen = true

  function addText(text: string): AnswerEvent[] {
    if (text === '') return []
    hasText = true
    return [{ type: 'block_delta', index, text }]
  }

  return {
    isKnown: true,
    start: () => [{ type: 'block_started', index, block }, ...addText(openingText(opening))],
    read(delta) {
      if (!isOpen) throw new BrokenAnswer('A block went on after its end.')
      const kind = deltas.get(delta['type'])
      if (!kind) return []
      if (kind.of !== block.type) throw new BrokenAnswer('A block got a delta of another kind.')
      const text = textIn(delta, kind.member)
      if (kind.member !== 'signature') return addText(text)
      opaque = toSignature(text)
      return []
    },
    end() {
      if (!isOpen) return []
      isOpen = false
      const input = block.type === 'tool_call' && !hasText ? addText(wholeInput(opening)) : []
      const seal: AnswerEvent[] = opaque ? [{ type: 'block_sealed', index, opaque }] : []
      return [...input, ...seal, { type: 'block_ended', index }]
    },
  }
}

function readBlock(opening: Json): Block | undefined {
  const { type, id, name } = opening
  if (type === 'text') return { type: 'text' }
  if (type === 'thinking' || type === 'redacted_thinking') return { type: 'reasoning' }
  if (type !== 'tool_use') return undefined
  if (typeof id !== 'string' || typeof name !== 'string') {
    throw new BrokenAnswer('A tool call has no id or no name.')
  }
  return { type: 'tool_call', id, name }
}

function readOpaque(opening: Json): OpaqueState | null {
  if (opening['type'] === 'thinking') return toSignature(asText(opening['signature']) ?? '')
  if (opening['type'] !== 'redacted_thinking') return null
  return { origin: 'messages', kind: 'redacted', data: textIn(opening, 'data'), id: null }
}

const toSignature = (data: string): OpaqueState | null =>
  data === '' ? null : { origin: 'messages', kind: 'signature', data, id: null }

/** The text that a block already has when it starts; mostly none. */
const openingText = ({ text, thinking }: Json): string => asText(text ?? thinking) ?? ''

function textIn(json: Json, member: string): string {
  const value = json[member]
  if (typeof value !== 'string') throw new BrokenAnswer(`A block has no ${member} where it must.`)
  return value
}

/** Some providers send the whole input at the start and no fragments. */
function wholeInput(opening: Json): string {
  const input = objectOf(opening['input'])
  return Object.keys(input).length === 0 ? '' : JSON.stringify(input)
}
