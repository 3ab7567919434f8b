import type { Json } from '#inference/answer.ts'
import { asText } from '#inference/untyped.ts'

/** Calls that are known so far: the id by the index; '' where the id has not been said. */
type KnownCalls = () => ReadonlyMap<number, string>

/**
 * Which call a piece belongs to. Some upstreams leave the index out: then it is the place in the list,
 * unless that place is taken by a call with another id.
 */
export function toolCallIndex(call: Json, position: number, knownCalls: KnownCalls): number {
  const index = call['index']
  if (typeof index === 'number' && Number.isInteger(index) && index >= 0) return index
  const id = asText(call['id']) ?? ''
  const known = knownCalls()
  const idThere = known.get(position) ?? ''
  if (id === '' || idThere === '' || id === idThere) return position
  for (const [place, knownId] of known) if (knownId === id) return place
  return known.keys().reduce((most, place) => Math.max(most, place), position) + 1
}
