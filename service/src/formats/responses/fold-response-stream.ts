import type { Json, OutFrame } from '#formats/answer.ts'
import { BrokenAnswer } from '#formats/broken-answer.ts'
import { asIndex, asObject, asText, listOf, objectOf } from '#formats/json-values.ts'
import { readComplaint, toProviderError } from '#formats/provider-failure.ts'

/** The plain answer is the response in the last frame of the stream. */
export function foldResponseStream(frames: readonly OutFrame[]): Json {
  for (const frame of frames.toReversed()) {
    const data = objectOf(frame.data)
    switch (asText(data['type']) ?? frame.event ?? '') {
      case 'response.completed':
      case 'response.incomplete':
        return withOutput(objectOf(data['response']), frames)
      case 'response.failed':
        throw toProviderError(readComplaint(objectOf(objectOf(data['response'])['error'])))
      case 'error':
        throw toProviderError(readComplaint(asObject(data['error']) ?? data))
    }
  }
  throw new BrokenAnswer('The stream has no end.')
}

/** Some servers leave the output out of the last frame, because they sent every item before. */
function withOutput(response: Json, frames: readonly OutFrame[]): Json {
  if (listOf(response['output']).length > 0) return response
  const items = new Map<number, unknown>()
  for (const { data } of frames) {
    if (typeof data === 'string' || data['type'] !== 'response.output_item.done') continue
    items.set(asIndex(data['output_index']) ?? items.size, data['item'])
  }
  const indexes = [...items.keys()].toSorted((one, other) => one - other)
  return { ...response, output: indexes.map((index) => items.get(index)) }
}
