import type { Json, OutFrame } from '#inference/answer.ts'
import { BrokenAnswer } from '#inference/broken-answer.ts'
import { complaintOf, providerFailed } from '#inference/provider-failure.ts'
import { asIndex, asObject, asText, listOf, objectOf } from '#inference/untyped.ts'

/** The plain answer is the response that the last frame of the stream describes. */
export function foldResponseStream(frames: readonly OutFrame[]): Json {
  for (const frame of frames.toReversed()) {
    const data = objectOf(frame.data)
    switch (asText(data['type']) ?? frame.event ?? '') {
      case 'response.completed':
      case 'response.incomplete':
        return withOutput(objectOf(data['response']), frames)
      case 'response.failed':
        throw providerFailed(complaintOf(objectOf(objectOf(data['response'])['error'])))
      case 'error':
        throw providerFailed(complaintOf(asObject(data['error']) ?? data))
    }
  }
  throw new BrokenAnswer('The stream has no end.')
}

/** Some servers leave the output out of their last frame, because every item was sent before. */
function withOutput(response: Json, frames: readonly OutFrame[]): Json {
  if (listOf(response['output']).length > 0) return response
  const items = new Map<number, unknown>()
  for (const { data } of frames) {
    if (typeof data === 'string' || data['type'] !== 'response.output_item.done') continue
    items.set(asIndex(data['output_index']) ?? items.size, data['item'])
  }
  const places = [...items.keys()].toSorted((one, other) => one - other)
  return { ...response, output: places.map((place) => items.get(place)) }
}
