import type { AnswerEvent, Block, Json, OutFrame } from '#formats/answer.ts'
import { packOpaqueState } from '#formats/opaque-state.ts'
import type { OpaqueState } from '#formats/turn.ts'

import { frameOf } from './message-frame.ts'

type BlockEvent = Extract<AnswerEvent, { index: number }>

/**
 * Writes blocks one after the other. A reasoning block is opened with its first text or opaque state, because
 * only then it is known whether it is `thinking` or, without any text, `redacted_thinking`.
 */
export function createBlockWriter() {
  let index = -1
  let block: Block = { type: 'text' }
  let isOpened = false

  function open(content: Json): OutFrame[] {
    isOpened = true
    return [frameOf({ type: 'content_block_start', index, content_block: content })]
  }
  const delta = (content: Json) => frameOf({ type: 'content_block_delta', index, delta: content })
  const openThinking = () =>
    isOpened ? [] : open({ type: 'thinking', thinking: '', signature: '' })

  function start(started: Block): OutFrame[] {
    index += 1
    block = started
    isOpened = false
    if (block.type === 'reasoning') return []
    if (block.type !== 'tool_call') return open({ type: 'text', text: '' })
    return open({ type: 'tool_use', id: block.id, name: block.name, input: {} })
  }

  function seal(opaque: OpaqueState): OutFrame[] {
    if (!isOpened && opaque.kind !== 'signature') {
      return open({ type: 'redacted_thinking', data: writeOpaque(opaque, 'redacted') })
    }
    const signature = writeOpaque(opaque, 'signature')
    return [...openThinking(), delta({ type: 'signature_delta', signature })]
  }

  return function write(event: BlockEvent): OutFrame[] {
    switch (event.type) {
      case 'block_started':
        return start(event.block)
      case 'block_delta':
        if (event.text === '') return []
        return [...openThinking(), delta(writeDelta(block, event.text))]
      case 'block_sealed':
        return seal(event.opaque)
      case 'block_ended':
        return [...openThinking(), frameOf({ type: 'content_block_stop', index })]
    }
  }
}

function writeDelta(block: Block, text: string): Json {
  if (block.type === 'tool_call') return { type: 'input_json_delta', partial_json: text }
  if (block.type === 'reasoning') return { type: 'thinking_delta', thinking: text }
  // This format has no block for refusals: they are text, and the stop reason marks them.
  return { type: 'text_delta', text }
}

/** State of this format is written unchanged; any other is packed. */
const writeOpaque = (opaque: OpaqueState, kind: OpaqueState['kind']): string =>
  opaque.origin === 'messages' && opaque.kind === kind ? opaque.data : packOpaqueState(opaque)
