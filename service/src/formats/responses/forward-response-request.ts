import type { Json } from '#formats/answer.ts'
import type { UpstreamModel } from '#formats/format.ts'
import { asNumber, asObject, asText, listOf } from '#formats/json-values.ts'
import { unpackOpaqueState } from '#formats/opaque-state.ts'

/** The caller's own request for an upstream of this format, without the members of Gatehouse; nothing is stored. */
export function forwardResponseRequest(
  request: Json,
  { model, maxOutputTokens, isPlain = false }: UpstreamModel,
): Json {
  const {
    flagged_categories: _ours,
    background: _later,
    stream_options: streamOptions,
    // In this format the output limit has one name: a server that knows others must not get a second limit.
    max_tokens: _old,
    max_completion_tokens: _new,
    ...others
  } = request
  const wanted = asNumber(request['max_output_tokens']) ?? maxOutputTokens
  const input = listOf(request['input'])
  return {
    ...others,
    ...(input.some(isForeign) && { input: input.filter((item) => !isForeign(item)) }),
    model,
    stream: !isPlain,
    // Upstreams refuse it where nothing is streamed.
    ...(!isPlain && streamOptions !== undefined && { stream_options: streamOptions }),
    store: false,
    max_output_tokens: Math.min(wanted, maxOutputTokens),
  }
}

/** Reasoning of a model of another format, which this upstream could not decrypt. */
function isForeign(item: unknown): boolean {
  const reasoning = asObject(item)
  if (reasoning?.['type'] !== 'reasoning') return false
  return unpackOpaqueState(asText(reasoning['encrypted_content']) ?? '') !== undefined
}
