import type { Json } from '#formats/answer.ts'
import { isObject } from '#formats/json-values.ts'

/** Texts that are not split over deltas: sent once, or repeated in each. */
const unsplitMembers = new Set(['id', 'type', 'role', 'name', 'format'])

/**
 * Adds a delta to the sum of the earlier ones: texts are joined, items of lists are merged by their `index` or
 * else appended, and all other values are replaced. Works for unknown members too.
 */
export function mergeDelta(whole: Json, delta: Json) {
  for (const [name, value] of Object.entries(delta)) {
    if (name === '__proto__' || value === null || value === undefined) continue
    whole[name] = mergeValue(name, whole[name], value)
  }
}

function mergeValue(name: string, known: unknown, value: unknown): unknown {
  if (typeof value === 'string' && typeof known === 'string') {
    return unsplitMembers.has(name) ? known || value : known + value
  }
  if (Array.isArray(value)) return mergeList(Array.isArray(known) ? known : [], value)
  if (!isObject(value)) return value
  // The delta belongs to its frame, so the sum must be a copy.
  const merged = isObject(known) ? known : {}
  mergeDelta(merged, value)
  return merged
}

function mergeList(known: unknown[], values: readonly unknown[]): unknown[] {
  for (const value of values) {
    const position = findSameIndex(known, value)
    if (position === -1) known.push(hasIndex(value) ? mergeValue('', undefined, value) : value)
    else known[position] = mergeValue('', known[position], value)
  }
  return known
}

const hasIndex = (value: unknown): value is Json =>
  isObject(value) && typeof value['index'] === 'number'

const findSameIndex = (known: readonly unknown[], value: unknown): number =>
  hasIndex(value)
    ? known.findLastIndex((item) => isObject(item) && item['index'] === value['index'])
    : -1
