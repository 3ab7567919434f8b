// Any change here makes the weights useless, so that they have to be trained again.

/** The FNV-1a hash of characters, one after another. */
export const hashStart = (seed: number) => seed ^ 0x811c9dc5
export const addToHash = (hash: number, unit: number) => Math.imul(hash ^ unit, 0x01000193)

/** The lower bits of FNV are mixed worst, and those choose the bucket. */
export function finishHash(hash: number): number {
  const once = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
  return (once ^ (once >>> 12)) >>> 0
}

const wordSeed = 1

export function hashWord(text: string, start: number, end: number): number {
  let hash = hashStart(wordSeed)
  for (let at = start; at < end; at++) hash = addToHash(hash, text.charCodeAt(at))
  return finishHash(hash)
}

/** The hash of a sequence of words, from the hash of all but the last and the hash of the last. */
export function hashSequence(before: number, word: number): number {
  return finishHash(Math.imul(before, 0x9e3779b1) ^ word)
}
