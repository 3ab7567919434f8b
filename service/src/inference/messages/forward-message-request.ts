import type { Json } from '#inference/answer.ts'
import { unpackOpaque } from '#inference/opaque.ts'
import type { UpstreamModel } from '#inference/protocol.ts'
import { asText, isObject } from '#inference/untyped.ts'

/**
 * The caller's own request for a provider of the same format: every member travels as it is, also unknown
 * ones. Only thinking that is not this format's own is taken out of the conversation, since a provider
 * refuses signatures that it did not make.
 */
export function forwardMessageRequest(request: Json, upstream: UpstreamModel): Json {
  const { flagged_categories: _, messages, max_tokens: asked, ...others } = request
  return {
    ...others,
    messages: Array.isArray(messages) ? withoutForeignThinking(messages as Json[]) : messages,
    model: upstream.model,
    max_tokens: Math.min(typeof asked === 'number' ? asked : Infinity, upstream.maxOutputTokens),
    stream: true,
  }
}

function withoutForeignThinking(messages: Json[]): Json[] {
  if (!messages.some(({ content }) => Array.isArray(content) && content.some(isForeign))) {
    return messages
  }
  return messages.flatMap((message) => {
    if (!Array.isArray(message['content'])) return [message]
    const content = (message['content'] as unknown[]).filter((block) => !isForeign(block))
    return content.length > 0 ? [{ ...message, content }] : []
  })
}

/** Thinking that another format's model left with this caller, or that was never signed. */
function isForeign(block: unknown): boolean {
  if (!isObject(block)) return false
  if (block['type'] === 'redacted_thinking') return isPacked(asText(block['data']) ?? '')
  if (block['type'] !== 'thinking') return false
  const signature = asText(block['signature']) ?? ''
  return signature === '' || isPacked(signature)
}

const isPacked = (text: string) => unpackOpaque(text) !== undefined
