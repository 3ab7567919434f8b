import { categories, type Category, type CategoryScores } from '#moderation/categories.ts'
import type { Segment } from '#moderation/scorer.ts'

import type { Adapter } from './adapter.ts'

const bracketed = /\[\s{0,9}\[[^[\]]{1,60}\]\s{0,9}\]/g
const whiteSpace = /\s+/g
const marker = /^\[\[cat:([a-z/-]{1,20})=(0(?:\.\d{1,4})?|1(?:\.0{1,4})?)\]\]$/

/**
 * For tests: a text itself says how it scores, as in `[[cat:sexual/minors=0.97]]`, and scores 0 in all other categories. No
 * server is asked. The highest of several marks of one category counts. It stands for a model that reads words, to which an
 * extra space makes no difference, so white space inside a mark is ignored.
 */
export const scripted: Adapter = {
  covers: new Set<Category>(categories),
  readsImages: false,
  groupMax: 32,
  toCalls: () => [],
  readReplies: (_, group) => group.map(readMarkers),
}

function readMarkers({ text }: Segment): CategoryScores {
  const scores = Object.fromEntries(categories.map((each) => [each, 0])) as Record<Category, number>
  for (const [mark] of text.matchAll(bracketed)) {
    const [, name = '', score = ''] = marker.exec(mark.replaceAll(whiteSpace, '')) ?? []
    const category = categories.find((each) => each === name)
    if (!category) continue
    scores[category] = Math.max(scores[category], Math.round(Number(score) * 10_000))
  }
  return scores
}
