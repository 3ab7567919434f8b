import { hashSequence, hashWord } from './hashes.ts'

/** Terms have at most three words. */
const termWordsMax = 3

/** How often terms occur in a text, each of them every time. */
export function countTerms(
  terms: ReadonlySet<number>,
  text: string,
  bounds: readonly number[],
): number {
  let found = 0
  let previous: number | undefined
  let previousPair: number | undefined
  for (let index = 0; index < bounds.length; index += 2) {
    const word = hashWord(text, bounds[index] ?? 0, bounds[index + 1] ?? 0)
    const pair = previous === undefined ? undefined : hashSequence(previous, word)
    if (terms.has(word)) found++
    if (pair !== undefined && terms.has(pair)) found++
    if (previousPair !== undefined && terms.has(hashSequence(previousPair, word))) found++
    previousPair = pair
    previous = word
  }
  return found
}

/** The hash by which a term is found; undefined if it has no words, or too many. */
export function hashTerm(text: string, bounds: readonly number[]): number | undefined {
  if (bounds.length > termWordsMax * 2) return undefined
  let hash: number | undefined
  for (let index = 0; index < bounds.length; index += 2) {
    const word = hashWord(text, bounds[index] ?? 0, bounds[index + 1] ?? 0)
    hash = hash === undefined ? word : hashSequence(hash, word)
  }
  return hash
}
