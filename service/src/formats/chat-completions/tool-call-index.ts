import type { Json } from '#formats/answer.ts'
import { asText } from '#formats/json-values.ts'

/** The ids of the calls so far, by their index; '' where the id has not come yet. */
type KnownCalls = () => ReadonlyMap<number, string>

/**
 * The index of the call that a delta belongs to. Some upstreams leave it out: then it is the position in the
 * list, unless a call with another id has that position.
 */
export function toolCallIndex(call: Json, position: number, knownCalls: KnownCalls): number {
  const index = call['index']
  if (typeof index === 'number' && Number.isInteger(index) && index >= 0) return index
  const id = asText(call['id']) ?? ''
  const known = knownCalls()
  const idAtPosition = known.get(position) ?? ''
  if (id === '' || idAtPosition === '' || id === idAtPosition) return position
  for (const [knownIndex, knownId] of known) if (knownId === id) return knownIndex
  return known.keys().reduce((most, knownIndex) => Math.max(most, knownIndex), position) + 1
}
