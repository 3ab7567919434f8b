import { z } from 'zod'

import type { Category, CategoryScores } from '#moderation/categories.ts'
import type { Segment } from '#moderation/scorer.ts'

import type { Adapter } from './adapter.ts'
import { malformed, probabilityToBasisPoints, readShape } from './malformed.ts'

// OpenAI's moderation endpoint: https://platform.openai.com/docs/api-reference/moderations

/** The names in a reply that make up a category; its score is the highest of theirs. */
const names = {
  harassment: ['harassment', 'harassment/threatening'],
  hate: ['hate', 'hate/threatening'],
  illicit: ['illicit', 'illicit/violent'],
  sexual: ['sexual'],
  'self-harm': ['self-harm', 'self-harm/intent', 'self-harm/instructions'],
  'sexual/minors': ['sexual/minors'],
} as const satisfies Record<Category, readonly string[]>
const covered = Object.keys(names) as Category[]

/** Older models have no scores for these. */
const mayBeAbsent: ReadonlySet<Category> = new Set(['illicit'])

const Result = z.object({
  category_scores: z.record(z.string(), z.number().nullable()),
  category_applied_input_types: z.record(z.string(), z.array(z.string()).nullable()).nullish(),
})
type Result = z.infer<typeof Result>
const Reply = z.object({ results: z.array(Result).max(1000) })

export const openai: Adapter = {
  covers: new Set(covered),
  readsImages: true,
  groupMax: 32,
  toCalls: (group, model) => [{ path: '/v1/moderations', body: { model, input: toInput(group) } }],
  readReplies([reply], group) {
    const { results } = readShape(Reply, reply)
    if (results.length !== group.length) {
      throw malformed(`it has ${results.length} results for ${group.length} texts`)
    }
    return results.map((result, index) => readScores(result, isImageAlone(group[index])))
  },
}

const isImageAlone = (segment: Segment | undefined) =>
  segment?.imageUrl !== undefined && segment.text === ''

/** Strings have a result each; the parts of a message with an image have one together. */
function toInput(group: readonly Segment[]) {
  const [first] = group
  if (first?.imageUrl === undefined) return group.map(({ text }) => text)
  const image = { type: 'image_url', image_url: { url: first.imageUrl } }
  return first.text === '' ? [image] : [{ type: 'text', text: first.text }, image]
}

/** Some categories are never looked for in images: their scores say nothing about one, and are left out. */
function readScores(result: Result, isImageAlone: boolean): CategoryScores {
  const { category_scores: scores, category_applied_input_types: applied } = result
  const says = (name: string) =>
    typeof scores[name] === 'number' && (!isImageAlone || applied?.[name]?.includes('image'))
  const entries = covered.flatMap((category) => {
    const given = names[category].filter(says)
    if (given.length > 0) {
      return [
        [category, probabilityToBasisPoints(Math.max(...given.map((name) => scores[name] ?? NaN)))],
      ]
    }
    if (isImageAlone || mayBeAbsent.has(category)) return []
    throw malformed(`it has no score for ${category}`)
  })
  return Object.fromEntries(entries) as CategoryScores
}
