import type { Json } from '#inference/answer.ts'
import { unpackOpaque } from '#inference/opaque.ts'
import type { UpstreamModel } from '#inference/protocol.ts'
import { asNumber, asObject, asText, listOf } from '#inference/untyped.ts'
import { withoutEscapes } from '#inference/without-escapes.ts'

/** The caller's own request for an upstream of this format; what is ours is taken out (G4.58). */
export function forwardResponseRequest(
  request: Json,
  { model, maxOutputTokens }: UpstreamModel,
): Json {
  const {
    flagged_categories: _ours,
    background: _later,
    // The bound has one name in this format; a server that knows others must not hear another bound.
    max_tokens: _old,
    max_completion_tokens: _new,
    ...others
  } = withoutEscapes(request)
  const wanted = asNumber(request['max_output_tokens']) ?? maxOutputTokens
  const input = listOf(request['input'])
  return {
    ...others,
    ...(input.some(isForeign) && { input: input.filter((item) => !isForeign(item)) }),
    model,
    stream: true,
    store: false,
    max_output_tokens: Math.min(wanted, maxOutputTokens),
  }
}

/** Reasoning that a model of another format did earlier: this upstream could not decrypt it. */
function isForeign(item: unknown): boolean {
  const reasoning = asObject(item)
  if (reasoning?.['type'] !== 'reasoning') return false
  return unpackOpaque(asText(reasoning['encrypted_content']) ?? '') !== undefined
}
