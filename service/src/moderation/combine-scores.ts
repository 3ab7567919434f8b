import { alwaysBlocked, type Category, type CategoryScores } from './categories.ts'
import { isReadable } from './pieces/split-segments.ts'
import type { ScorerSettings } from './read-moderation.ts'
import type { Scorer, Segment } from './scorer.ts'

/** What one scorer has said about all segments, and where its own thresholds are. */
export type ScorerAnswer = Pick<ScorerSettings, 'thresholds'> & {
  readonly scores: readonly CategoryScores[]
}

/** What is known about one segment. */
export type SegmentScores = {
  readonly scores: CategoryScores
  /** Categories whose score is at or above the threshold of the scorer that gave it. */
  readonly reached: readonly Category[]
}

const isAlwaysBlocked = (category: Category) =>
  (alwaysBlocked as readonly Category[]).includes(category)

type Covering = { readonly covers: ReadonlySet<Category> }

/**
 * Which scorers are needed: for a category that is always blocked all that cover it, because missing one is worse than a wrong
 * alarm; for any other category the first one, so that thresholds mean something.
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
 * Joins the answers of several scorers, in their order in the file: the highest score of a category that is always blocked,
 * otherwise the first that there is.
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

/** Whether a segment has an image in which some wanted category that is always blocked was not looked for. */
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
  /** Those that were asked and have no scores. */
  readonly failed: readonly (Covering & Pick<Scorer, 'readsImages'>)[]
}

/**
 * The wanted categories that some text has no score of. Few categories are looked for in images, so one without a score is no
 * gap, unless a scorer would have looked at the image for a category that is always blocked, and has failed.
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
