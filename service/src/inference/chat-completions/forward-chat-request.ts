import type { Json } from '#inference/answer.ts'
import type { UpstreamModel } from '#inference/protocol.ts'
import { asNumber, asObject, asText, isObject, listOf } from '#inference/untyped.ts'
import { withoutEscapes } from '#inference/without-escapes.ts'

import { readReasoning } from './reasoning-signature.ts'

/** The caller's own request: we say which model, how much, and that we want it streamed with usage. */
export function forwardChatRequest(request: Json, upstream: UpstreamModel): Json {
  const { flagged_categories: _ours, store, ...members } = withoutEscapes(request)
  return {
    ...members,
    messages: withOwnReasoning(request['messages']),
    model: upstream.model,
    stream: true,
    stream_options: { ...asObject(request['stream_options']), include_usage: true },
    ...(store !== undefined && { store: false }),
    ...boundOutput(request, upstream),
  }
}

/** The bound stands under the names that the caller uses: some upstreams know only one of the two. */
function boundOutput(
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
 * Messages for an upstream of this format. What another format's model thought is taken out of them: it
 * means nothing here, and a strict upstream refuses members that it does not know.
 */
function withOwnReasoning(messages: unknown): unknown {
  if (!listOf(messages).some(isForeign)) return messages
  return listOf(messages).map((message) => {
    if (!isForeign(message)) return message
    const { reasoning_content: _text, reasoning_signature: _seal, ...others } = message
    return others
  })
}

function isForeign(message: unknown): message is Json {
  const signature = isObject(message) ? (asText(message['reasoning_signature']) ?? '') : ''
  return readReasoning('', signature).some(
    (part) => part.type === 'reasoning' && part.opaque?.origin !== 'chat_completions',
  )
}
