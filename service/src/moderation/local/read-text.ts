import { normalise } from '#text/normalise.ts'

import { findWords } from './words.ts'

/** A text as all parts of the model see it: normalised, in lower case, and where its words are. */
export function readText(original: string): { text: string; bounds: readonly number[] } {
  const text = normalise(original).text.toLowerCase()
  return { text, bounds: findWords(text) }
}
