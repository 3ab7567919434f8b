import type { Json } from '#formats/answer.ts'
import type { UpstreamModel } from '#formats/format.ts'
import { asText, isObject } from '#formats/json-values.ts'
import { unpackOpaqueState } from '#formats/opaque-state.ts'

import { temperatureMax } from './write-message-request.ts'

/**
 * The caller's own request for an upstream of the same format, with every member, also unknown ones. Only
 * thinking of models of other formats is removed from the conversation, since an upstream refuses signatures
 * that it did not make, and a temperature above the format's own limit is lowered to it.
 */
export function forwardMessageRequest(request: Json, upstream: UpstreamModel): Json {
  const { flagged_categories: _, messages, max_tokens: wanted, temperature, ...others } = request
  return {
    ...others,
    ...(temperature !== undefined && { temperature: clampTemperature(temperature) }),
    messages: Array.isArray(messages) ? withoutForeignThinking(messages as Json[]) : messages,
    model: upstream.model,
    max_tokens: Math.min(typeof wanted === 'number' ? wanted : Infinity, upstream.maxOutputTokens),
    stream: !upstream.isPlain,
  }
}

const clampTemperature = (temperature: unknown) =>
  typeof temperature === 'number' ? Math.min(temperature, temperatureMax) : temperature

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

/** Thinking of a model of another format, or without a signature. */
function isForeign(block: unknown): boolean {
  if (!isObject(block)) return false
  if (block['type'] === 'redacted_thinking') return isPacked(asText(block['data']) ?? '')
  if (block['type'] !== 'thinking') return false
  const signature = asText(block['signature']) ?? ''
  return signature === '' || isPacked(signature)
}

const isPacked = (text: string) => unpackOpaqueState(text) !== undefined
