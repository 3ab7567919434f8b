import type { Json } from '#inference/answer.ts'
import { isObject } from '#inference/untyped.ts'

/** Texts that are said whole: once, or in every piece again. */
const saidWhole = new Set(['id', 'type', 'role', 'name', 'format'])

/**
 * Adds a piece to what has come so far: texts are joined, the items of lists are put together by their
 * `index` or else added, and what is neither is replaced. Works for members that we do not know.
 */
export function mergeDelta(whole: Json, piece: Json) {
  for (const [name, value] of Object.entries(piece)) {
    if (name === '__proto__' || value === null || value === undefined) continue
    whole[name] = mergeValue(name, whole[name], value)
  }
}

function mergeValue(name: string, known: unknown, value: unknown): unknown {
  if (typeof value === 'string' && typeof known === 'string') {
    return saidWhole.has(name) ? known || value : known + value
  }
  if (Array.isArray(value)) return mergeList(Array.isArray(known) ? known : [], value)
  if (!isObject(value)) return value
  // The piece belongs to the frame it came in, so what is put together is a copy.
  const merged = isObject(known) ? known : {}
  mergeDelta(merged, value)
  return merged
}

function mergeList(known: unknown[], values: readonly unknown[]): unknown[] {
  for (const value of values) {
    const place = placeOf(known, value)
    if (place === -1) known.push(hasIndex(value) ? mergeValue('', undefined, value) : value)
    else known[place] = mergeValue('', known[place], value)
  }
  return known
}

const hasIndex = (value: unknown): value is Json =>
  isObject(value) && typeof value['index'] === 'number'

const placeOf = (known: readonly unknown[], value: unknown): number =>
  hasIndex(value)
    ? known.findLastIndex((item) => isObject(item) && item['index'] === value['index'])
    : -1
