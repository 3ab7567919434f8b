import type { Json } from '#inference/answer.ts'
import { isObject } from '#inference/untyped.ts'
import { parseExact } from '#platform/exact-json.ts'

/** The input of a tool in its JSON text; undefined where that is no object. Throws where it is no JSON. */
export function readToolInput(text: string): Json | undefined {
  const input = parseExact(text)
  // A number that is kept as it was written looks like an object too.
  return text.trimStart().startsWith('{') && isObject(input) ? input : undefined
}
