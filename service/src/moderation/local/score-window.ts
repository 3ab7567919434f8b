import type { Category } from '#moderation/categories.ts'

import { extractFeatures, type TextFeatures } from './features.ts'
import { hasMinorTerm } from './minor-terms.ts'
import { type Head, heads, type Model } from './model.ts'
import { countTerms } from './term-count.ts'
import { findWords } from './words.ts'

export type Scores = Record<Category, number>

/** The scores of a piece of normalised text in lower case, in basis points. */
export function scoreWindow(model: Model, text: string): Scores {
  const bounds = findWords(text)
  const sexual = sexualScore(countTerms(model.terms, text, bounds))
  // Looked for only if it matters, because most texts have no sexual term.
  const hasMinor = sexual > 0 && hasMinorTerm(text, bounds)
  return {
    ...scoreHeads(model, extractFeatures(text, bounds)),
    sexual,
    'sexual/minors': minorsScore(sexual, hasMinor),
  }
}

function scoreHeads(model: Model, { buckets, values }: TextFeatures): Record<Head, number> {
  const { weights, scales, biases } = model
  // Written out by head: a loop over the heads inside this one would take twice as long.
  let [harassment, hate, illicit, selfHarm] = [0, 0, 0, 0]
  for (let index = 0; index < buckets.length; index++) {
    const at = (buckets[index] ?? 0) * heads.length
    const value = values[index] ?? 0
    harassment += (weights[at] ?? 0) * value
    hate += (weights[at + 1] ?? 0) * value
    illicit += (weights[at + 2] ?? 0) * value
    selfHarm += (weights[at + 3] ?? 0) * value
  }
  const toScore = (sum: number, head: number) =>
    toBasisPoints(sum * (scales[head] ?? 0) + (biases[head] ?? 0))
  return {
    harassment: toScore(harassment, 0),
    hate: toScore(hate, 1),
    illicit: toScore(illicit, 2),
    'self-harm': toScore(selfHarm, 3),
  }
}

const toBasisPoints = (logit: number) => Math.round(10_000 / (1 + Math.exp(-logit)))

/** One term alone is often harmless, so it stays under the threshold of 6,000 that two terms reach. */
const halfWay = 1.25

/** How sexual a text with this number of sexual terms is, in basis points: 4,444 for one, 6,154 for two, 7,059 for three. */
export function sexualScore(termCount: number): number {
  return Math.round((10_000 * termCount) / (termCount + halfWay))
}

/** No text of `sexual/minors` is kept to train on, so its score is the sexual one of a text that names a minor. */
export function minorsScore(sexual: number, hasMinor: boolean): number {
  return hasMinor ? sexual : 0
}
