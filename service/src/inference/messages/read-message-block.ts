import type { AnswerEvent, Block, Json } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import type { Opaque } from '#inference/turn.ts'
import { asText, objectOf } from '#inference/untyped.ts'

/** One block of a stream, from its start to its end. */
export type BlockReader = {
  /** False for what a provider does by itself, such as searching: it is no part of the answer's meaning. */
  hasMeaning: boolean
  start(): AnswerEvent[]
  read(delta: Json): AnswerEvent[]
  /** Does nothing the second time. */
  end(): AnswerEvent[]
}

/** Which delta adds to which block, and in which member. Deltas of other kinds say nothing to us. */
const deltas = new Map<unknown, { of: Block['type']; member: string }>([
  ['text_delta', { of: 'text', member: 'text' }],
  ['thinking_delta', { of: 'reasoning', member: 'thinking' }],
  ['signature_delta', { of: 'reasoning', member: 'signature' }],
  ['input_json_delta', { of: 'tool_call', member: 'partial_json' }],
])

/** Reads one block; the signature of its reasoning is told at its end, whenever it came. */
export function createBlockReader(index: number, opening: Json): BlockReader {
  const block = blockOf(opening)
  if (!block) return { hasMeaning: false, start: () => [], read: () => [], end: () => [] }
  let opaque = opaqueOf(opening)
  let hasText = false
  let isOpen = true

  function tell(text: string): AnswerEvent[] {
    if (text === '') return []
    hasText = true
    return [{ type: 'block_delta', index, text }]
  }

  return {
    hasMeaning: true,
    start: () => [{ type: 'block_started', index, block }, ...tell(openingText(opening))],
    read(delta) {
      if (!isOpen) throw new BrokenAnswer('A block went on after its end.')
      const kind = deltas.get(delta['type'])
      if (!kind) return []
      if (kind.of !== block.type) throw new BrokenAnswer('A block got a delta of another kind.')
      const text = textIn(delta, kind.member)
      if (kind.member !== 'signature') return tell(text)
      opaque = signature(text)
      return []
    },
    end() {
      if (!isOpen) return []
      isOpen = false
      const late = block.type === 'tool_call' && !hasText ? tell(wholeInput(opening)) : []
      const seal: AnswerEvent[] = opaque ? [{ type: 'block_sealed', index, opaque }] : []
      return [...late, ...seal, { type: 'block_ended', index }]
    },
  }
}

function blockOf(opening: Json): Block | undefined {
  const { type, id, name } = opening
  if (type === 'text') return { type: 'text' }
  if (type === 'thinking' || type === 'redacted_thinking') return { type: 'reasoning' }
  if (type !== 'tool_use') return undefined
  if (typeof id !== 'string' || typeof name !== 'string') {
    throw new BrokenAnswer('A tool call has no id or no name.')
  }
  return { type: 'tool_call', id, name }
}

function opaqueOf(opening: Json): Opaque | null {
  if (opening['type'] === 'thinking') return signature(asText(opening['signature']) ?? '')
  if (opening['type'] !== 'redacted_thinking') return null
  return { origin: 'messages', kind: 'redacted', data: textIn(opening, 'data'), id: null }
}

const signature = (data: string): Opaque | null =>
  data === '' ? null : { origin: 'messages', kind: 'signature', data, id: null }

/** What a block already has when it starts; most often nothing. */
const openingText = ({ text, thinking }: Json): string => asText(text ?? thinking) ?? ''

function textIn(json: Json, member: string): string {
  const value = json[member]
  if (typeof value !== 'string') throw new BrokenAnswer(`A block has no ${member} where it must.`)
  return value
}

/** Some providers give the whole input at the start and no fragments. */
function wholeInput(opening: Json): string {
  const input = objectOf(opening['input'])
  return Object.keys(input).length === 0 ? '' : JSON.stringify(input)
}
