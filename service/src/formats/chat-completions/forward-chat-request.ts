import type { Json } from '#formats/answer.ts'
import type { UpstreamModel } from '#formats/format.ts'
import { asNumber, asObject, asText, isObject, listOf } from '#formats/json-values.ts'

import { readReasoning } from './reasoning-signature.ts'

/** The caller's own request. Gatehouse sets the model, the output limit, and for a stream that it has usage. */
export function forwardChatRequest(request: Json, upstream: UpstreamModel): Json {
  const { flagged_categories: _ours, store, stream_options: options, ...members } = request
  return {
    ...members,
    messages: withOwnReasoning(request['messages']),
    model: upstream.model,
    stream: !upstream.isPlain,
    ...(!upstream.isPlain && { stream_options: { ...asObject(options), include_usage: true } }),
    ...(store !== undefined && { store: false }),
    ...limitOutput(request, upstream),
  }
}

/** Keeps the caller's names for the output limit: some upstreams know only one of the two. */
function limitOutput(
  request: Json,
  { maxOutputTokens: most, outputLimitMember }: UpstreamModel,
): Json {
  const names = ['max_completion_tokens', 'max_tokens'] as const
  const given = names.filter((name) => asNumber(request[name]) !== undefined)
  if (given.length === 0) return { [outputLimitMember]: most }
  return Object.fromEntries(
    given.map((name) => [name, Math.min(asNumber(request[name]) ?? most, most)]),
  )
}

/**
 * Messages for an upstream of this format, without the reasoning of models of other formats: the upstream cannot
 * read it, and a strict one refuses members that it does not know.
 */
function withOwnReasoning(messages: unknown): unknown {
  if (!listOf(messages).some(isForeign)) return messages
  return listOf(messages).map((message) => {
    if (!isForeign(message)) return message
    const { reasoning_content: _text, reasoning_signature: _signature, ...others } = message
    return others
  })
}

function isForeign(message: unknown): message is Json {
  const signature = isObject(message) ? (asText(message['reasoning_signature']) ?? '') : ''
  return readReasoning('', signature).some(
    (part) => part.type === 'reasoning' && part.opaque?.origin !== 'chat_completions',
  )
}
