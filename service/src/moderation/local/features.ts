import { addToHash, finishHash, hashSequence, hashStart, hashWord } from './hashes.ts'

/** A text as a sparse vector of length 1. Each element is the square root of how often its bucket occurs. */
export type TextFeatures = { readonly buckets: Int32Array; readonly values: Float32Array }

export const bucketCount = 2 ** 18
const bucketMask = bucketCount - 1

const gramSeed = 3
const gramMin = 3
const gramMax = 5
/** Longer words are mostly addresses and encoded data, so only the word itself counts, and not its parts. */
const spelledWordMax = 24

const wordStart = '<'.charCodeAt(0)
const wordEnd = '>'.charCodeAt(0)

/**
 * How often each bucket was counted in the current text; all zero between two texts. All texts share one array, because
 * clearing the few buckets that were used is much cheaper than a new map for each text. Nothing here awaits, so two texts
 * cannot mix.
 */
const counts = new Uint32Array(bucketCount)
let used = new Int32Array(4096)
let usedCount = 0

function count(hash: number): void {
  const bucket = hash & bucketMask
  const before = counts[bucket] ?? 0
  counts[bucket] = before + 1
  if (before > 0) return
  if (usedCount === used.length) {
    const larger = new Int32Array(used.length * 2)
    larger.set(used)
    used = larger
  }
  used[usedCount++] = bucket
}

/** Words, pairs of words, and three to five characters in a row of a word, with its start and end as characters. */
export function extractFeatures(text: string, bounds: readonly number[]): TextFeatures {
  let previous = 0
  for (let index = 0; index < bounds.length; index += 2) {
    const start = bounds[index] ?? 0
    const end = bounds[index + 1] ?? 0
    const word = hashWord(text, start, end)
    count(word)
    count(hashSequence(previous, word))
    previous = word
    if (end - start <= spelledWordMax) countGrams(text, start, end)
  }
  return takeCounts()
}

function countGrams(text: string, start: number, end: number): void {
  for (let first = start - 1; first <= end + 1 - gramMin; first++) {
    const last = Math.min(first + gramMax - 1, end)
    let hash = hashStart(gramSeed)
    for (let at = first; at <= last; at++) {
      const unit = at < start ? wordStart : at === end ? wordEnd : text.charCodeAt(at)
      hash = addToHash(hash, unit)
      if (at - first >= gramMin - 1) count(finishHash(hash))
    }
  }
}

function takeCounts(): TextFeatures {
  const buckets = used.slice(0, usedCount)
  const values = new Float32Array(usedCount)
  let total = 0
  for (const bucket of buckets) total += counts[bucket] ?? 0
  const scale = 1 / Math.sqrt(total || 1)
  for (let index = 0; index < usedCount; index++) {
    const bucket = buckets[index] ?? 0
    values[index] = Math.sqrt(counts[bucket] ?? 0) * scale
    counts[bucket] = 0
  }
  usedCount = 0
  return { buckets, values }
}
