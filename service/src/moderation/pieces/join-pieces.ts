import type { Category, CategoryScores } from '#moderation/categories.ts'
import type { ScoringCall, Segment } from '#moderation/scorer.ts'

import type { SegmentPiece } from './split-segments.ts'

type Options = {
  segments: readonly Segment[]
  pieces: readonly SegmentPiece[]
  covers: ReadonlySet<Category>
  onScored: ScoringCall['onScored']
}

/** Makes the scores of segments from those of their pieces. A segment is scored when all of its pieces are. */
export function joinPieces({ segments, pieces, covers, onScored }: Options) {
  // A text without a piece is empty and belongs to no category. An image without a piece was not scored.
  const scores = segments.map(({ text, imageUrl }) =>
    text === '' && imageUrl === undefined ? zeroes(covers) : {},
  )
  const waiting = segments.map(() => 0)
  for (const { index } of pieces) waiting[index] = (waiting[index] ?? 0) + 1
  return {
    scores,
    add(group: readonly SegmentPiece[], results: readonly CategoryScores[]) {
      group.forEach(({ index }, place) => {
        const joined = highestOf(scores[index] ?? {}, results[place] ?? {})
        scores[index] = joined
        const left = (waiting[index] ?? 0) - 1
        waiting[index] = left
        if (left === 0) onScored?.(index, joined)
      })
    },
  }
}

const zeroes = (covers: ReadonlySet<Category>): CategoryScores =>
  Object.fromEntries([...covers].map((category) => [category, 0]))

/** The higher score in each category, because a text belongs to a category if any piece of it does. */
function highestOf(left: CategoryScores, right: CategoryScores): CategoryScores {
  const highest: Partial<Record<Category, number>> = { ...left }
  for (const [name, score] of Object.entries(right)) {
    const category = name as Category
    highest[category] = Math.max(highest[category] ?? 0, score)
  }
  return highest
}
