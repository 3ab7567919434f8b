import type { Json, OutFrame } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'

import { providerFailed } from './provider-failure.ts'
import { asIndex, asList, asObject, asText } from './untyped.ts'

/** The plain answer is the response that the last frame of the stream describes. */
export function fold(frames: readonly OutFrame[]): Json {
  for (const frame of frames.toReversed()) {
    const data = asObject(frame.data) ?? {}
    switch (asText(data['type']) ?? frame.event ?? '') {
      case 'response.completed':
      case 'response.incomplete':
        return withOutput(asObject(data['response']) ?? {}, frames)
      case 'response.failed':
        throw providerFailed(asObject(asObject(data['response'])?.['error']) ?? {})
      case 'error':
        throw providerFailed(asObject(data['error']) ?? data)
    }
  }
  throw new BrokenAnswer('The stream has no end.')
}

/** Some servers leave the output out of their last frame, because every item was sent before. */
function withOutput(response: Json, frames: readonly OutFrame[]): Json {
  if ((asList(response['output']) ?? []).length > 0) return response
  const items = new Map<number, unknown>()
  for (const { data } of frames) {
    if (typeof data === 'string' || data['type'] !== 'response.output_item.done') continue
    items.set(asIndex(data['output_index']) ?? items.size, data['item'])
  }
  const places = [...items.keys()].toSorted((one, other) => one - other)
  return { ...response, output: places.map((place) => items.get(place)) }
}
