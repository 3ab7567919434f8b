import type { Json } from '#inference/answer.ts'

import { isObject, listOf, textOf } from './json-member.ts'
import { readReasoning } from './reasoning-signature.ts'

/**
 * Messages for an upstream of this format. What another format's model thought is taken out of them: it
 * means nothing here, and a strict upstream refuses members that it does not know.
 */
export function withOwnReasoning(messages: unknown): unknown {
  if (!listOf(messages).some(isForeign)) return messages
  return listOf(messages).map((message) => {
    if (!isForeign(message)) return message
    const { reasoning_content: _text, reasoning_signature: _seal, ...others } = message
    return others
  })
}

function isForeign(message: unknown): message is Json {
  const signature = isObject(message) ? (textOf(message['reasoning_signature']) ?? '') : ''
  return readReasoning('', signature).some(
    (part) => part.type === 'reasoning' && part.opaque?.origin !== 'chat_completions',
  )
}
