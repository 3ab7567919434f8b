import { categories, type Category, type CategoryScores } from '#moderation/categories.ts'

import type { HeldOut, Labelled } from './held-out.ts'
import { averagePrecision, recallAt, rocArea, type Scored } from './metrics.ts'

/** The threshold from which the optional categories, and locally self-harm, count as found. */
const blockThreshold = 6_000

export type QualityRow = {
  readonly name: string
  readonly texts: number
  readonly positives: number
  readonly averagePrecision: number
  readonly rocArea: number
  readonly recallAtOnePercent: number
  /** How many of the positive texts reach the threshold. */
  readonly recallAtThreshold: number
}

type Question = { name: string; category: Category | 'any'; texts: readonly Labelled[] }

/** What is asked of the model, on texts that it was not trained on. */
function questionsOf(heldOut: HeldOut): Question[] {
  const { benign, safeLookingUnsafe, unsafeContrasts } = heldOut
  return [
    { name: 'OpenAI S', category: 'sexual', texts: heldOut.labelledFor('S') },
    { name: 'OpenAI H', category: 'hate', texts: heldOut.labelledFor('H') },
    { name: 'OpenAI HR', category: 'harassment', texts: heldOut.labelledFor('HR') },
    { name: 'OpenAI SH', category: 'self-harm', texts: heldOut.labelledFor('SH') },
    { name: 'HateCheck', category: 'hate', texts: heldOut.hateCheck },
    {
      name: 'StrongREJECT + SimpleSafetyTests, benign',
      category: 'illicit',
      texts: join(heldOut.illicit, benign),
    },
    {
      name: 'StrongREJECT + SimpleSafetyTests, XSTest safe',
      category: 'illicit',
      texts: join(heldOut.illicit, safeLookingUnsafe),
    },
    {
      name: 'SimpleSafetyTests, benign',
      category: 'self-harm',
      texts: join(heldOut.selfHarm, benign),
    },
    { name: 'ConvAbuse test', category: 'harassment', texts: heldOut.abusedBots },
    {
      name: 'XSTest unsafe, safe',
      category: 'any',
      texts: join(unsafeContrasts, safeLookingUnsafe),
    },
  ]
}

const join = (positive: readonly string[], negative: readonly string[]): Labelled[] => [
  ...positive.map((text) => ({ text, isPositive: true })),
  ...negative.map((text) => ({ text, isPositive: false })),
]

export type ScoreText = (text: string) => CategoryScores

const highest = (scores: CategoryScores) =>
  Math.max(...categories.map((category) => scores[category] ?? 0))

export function measureQuality(scoreText: ScoreText, heldOut: HeldOut): QualityRow[] {
  return questionsOf(heldOut).map(({ name, category, texts }) => {
    const scored: Scored[] = texts.map(({ text, isPositive }) => {
      const scores = scoreText(text)
      return { score: category === 'any' ? highest(scores) : (scores[category] ?? 0), isPositive }
    })
    const positives = scored.filter(({ isPositive }) => isPositive)
    const found = positives.filter(({ score }) => score >= blockThreshold)
    return {
      name: `${name}: ${category}`,
      texts: scored.length,
      positives: positives.length,
      averagePrecision: averagePrecision(scored),
      rocArea: rocArea(scored),
      recallAtOnePercent: recallAt(0.01, scored),
      recallAtThreshold: found.length / positives.length,
    }
  })
}

/** The share of harmless texts that would be blocked if all categories were. */
export function measureOverBlock(scoreText: ScoreText, texts: readonly string[]): number {
  const blocked = texts.filter((text) => highest(scoreText(text)) >= blockThreshold)
  return blocked.length / texts.length
}
