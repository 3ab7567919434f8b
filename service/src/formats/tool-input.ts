import { parseExact } from '#platform/exact-json.ts'

import type { Json } from './answer.ts'
import { isObject } from './json-values.ts'

/** Parses the input of a tool call. Undefined where it is JSON but no object; throws where it is no JSON. */
export function readToolInput(text: string): Json | undefined {
  const input = parseExact(text)
  // `parseExact` returns an object also for a number that a double cannot hold.
  return text.trimStart().startsWith('{') && isObject(input) ? input : undefined
}
