import { alwaysBlocked, type Category, type CategoryScores } from './categories.ts'
import { isReadable } from './pieces/split-segments.ts'
import type { ScorerSettings } from './read-moderation.ts'
import type { Scorer, Segment } from './scorer.ts'

/** The scores of one scorer for all segments, and its thresholds. */
export type ScorerAnswer = Pick<ScorerSettings, 'thresholds'> & {
  readonly scores: readonly CategoryScores[]
}

/** The combined scores of one segment. */
export type SegmentScores = {
  readonly scores: CategoryScores
  /** Categories whose score is at or above the threshold of the scorer that gave it. */
  readonly reached: readonly Category[]
}

const isAlwaysBlocked = (category: Category) =>
  (alwaysBlocked as readonly Category[]).includes(category)

type Covering = { readonly covers: ReadonlySet<Category> }

/**
 * Chooses the scorers that are needed. An always-blocked category needs all scorers that cover it, because missing one is worse
 * than a false alarm. Any other category needs only the first, so that its threshold keeps its meaning.
 */
export function chooseScorers<Each extends Covering>(
  scorers: readonly Each[],
  wanted: ReadonlySet<Category>,
): Each[] {
  const needed = new Set<Each>()
  for (const category of wanted) {
    const covering = scorers.filter(({ covers }) => covers.has(category))
    for (const each of isAlwaysBlocked(category) ? covering : covering.slice(0, 1)) needed.add(each)
  }
  return scorers.filter((each) => needed.has(each))
}

/**
 * Joins the scores of several scorers, in their order in the file: the highest for an always-blocked category, otherwise the
 * first.
 */
export function combineScores(
  answers: readonly ScorerAnswer[],
  index: number,
  wanted: ReadonlySet<Category>,
): SegmentScores {
  const scores: Partial<Record<Category, number>> = {}
  const reached: Category[] = []
  for (const category of wanted) {
    const countsAll = isAlwaysBlocked(category)
    let isReached = false
    for (const { scores: given, thresholds } of answers) {
      const score = given[index]?.[category]
      if (score === undefined) continue
      scores[category] = Math.max(scores[category] ?? 0, score)
      isReached ||= score >= thresholds[category]
      if (!countsAll) break
    }
    if (isReached) reached.push(category)
  }
  return { scores, reached }
}

/** Whether a segment has an image in which some wanted, always-blocked category was not looked for. */
export const hasUnreadImage = (
  { imageUrl }: Segment,
  { scores }: SegmentScores,
  { wanted, isRead }: { wanted: ReadonlySet<Category>; isRead: boolean },
): boolean =>
  imageUrl !== undefined &&
  (!isRead ||
    !isReadable(imageUrl) ||
    alwaysBlocked.some((category) => wanted.has(category) && scores[category] === undefined))

type Scored = {
  readonly segments: readonly Segment[]
  readonly results: readonly SegmentScores[]
  readonly wanted: ReadonlySet<Category>
  /** The scorers that were asked and have failed. */
  readonly failed: readonly (Covering & Pick<Scorer, 'readsImages'>)[]
}

/**
 * The wanted categories for which some text has no score. Only a few categories are looked for in images, so an image without a
 * score is no gap, unless a scorer that would have looked at it for an always-blocked category has failed.
 */
export function findUnscoredCategories({
  segments,
  results,
  wanted,
  failed,
}: Scored): ReadonlySet<Category> {
  const isMissing = (category: Category, index: number) =>
    results[index]?.scores[category] === undefined
  const hasFailedReader = (category: Category) =>
    failed.some(({ covers, readsImages = false }) => readsImages && covers.has(category))
  return new Set(
    [...wanted].filter((category) => {
      const countsImages = isAlwaysBlocked(category) && hasFailedReader(category)
      return segments.some(
        ({ text, imageUrl }, index) =>
          (text !== '' || (countsImages && isReadable(imageUrl))) && isMissing(category, index),
      )
    }),
  )
}
