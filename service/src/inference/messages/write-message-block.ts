import type { AnswerEvent, Block, Json, OutFrame } from '#inference/answer.ts'
import { packOpaque } from '#inference/opaque.ts'
import type { Opaque } from '#inference/turn.ts'

import { frameOf } from './message-frame.ts'

type BlockEvent = Extract<AnswerEvent, { index: number }>

/**
 * Writes blocks, one after the other. A block of reasoning is opened with its first text or seal, because
 * only then it is known whether it is `thinking` or, with nothing to read, `redacted_thinking`.
 */
export function createBlockWriter() {
  let index = -1
  let block: Block = { type: 'text' }
  let isOpened = false

  function opening(content: Json): OutFrame[] {
    isOpened = true
    return [frameOf({ type: 'content_block_start', index, content_block: content })]
  }
  const delta = (content: Json) => frameOf({ type: 'content_block_delta', index, delta: content })
  const openedThinking = () =>
    isOpened ? [] : opening({ type: 'thinking', thinking: '', signature: '' })

  function start(started: Block): OutFrame[] {
    index += 1
    block = started
    isOpened = false
    if (block.type === 'reasoning') return []
    if (block.type !== 'tool_call') return opening({ type: 'text', text: '' })
    return opening({ type: 'tool_use', id: block.id, name: block.name, input: {} })
  }

  function seal(opaque: Opaque): OutFrame[] {
    if (!isOpened && opaque.kind !== 'signature') {
      return opening({ type: 'redacted_thinking', data: written(opaque, 'redacted') })
    }
    const signature = written(opaque, 'signature')
    return [...openedThinking(), delta({ type: 'signature_delta', signature })]
  }

  return function write(event: BlockEvent): OutFrame[] {
    switch (event.type) {
      case 'block_started':
        return start(event.block)
      case 'block_delta':
        if (event.text === '') return []
        return [...openedThinking(), delta(addition(block, event.text))]
      case 'block_sealed':
        return seal(event.opaque)
      case 'block_ended':
        return [...openedThinking(), frameOf({ type: 'content_block_stop', index })]
    }
  }
}

function addition(block: Block, text: string): Json {
  if (block.type === 'tool_call') return { type: 'input_json_delta', partial_json: text }
  if (block.type === 'reasoning') return { type: 'thinking_delta', thinking: text }
  // There is no block for refusals: they are text, and the stop reason says what they are.
  return { type: 'text_delta', text }
}

/** Our own format's state stands as it is; any other is packed. */
const written = (opaque: Opaque, kind: Opaque['kind']): string =>
  opaque.origin === 'messages' && opaque.kind === kind ? opaque.data : packOpaque(opaque)
