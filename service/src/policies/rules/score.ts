/** What an expression is evaluated to. */
export type ExpressionValue = boolean | bigint | number

export const scoreMax = 10_000

/** How much texts belong to categories, 0 to 1: the highest of all of them. A category that is missing was not scored. */
export type ScoreMap = ReadonlyMap<string, number>

/** The category that is scored for what a rule names: no scorer tells the kinds of self-harm apart. */
export const scoredAs = (category: string): string =>
  category.startsWith('self-harm/') ? 'self-harm' : category

/** The score of a rule in basis points. Throws for what is not a number, which no threshold could be compared with. */
export function toBasisPoints(value: ExpressionValue): number {
  if (typeof value === 'boolean') return value ? scoreMax : 0
  const points = typeof value === 'bigint' ? Number(value) : Math.round(value * scoreMax)
  if (Number.isNaN(points)) throw new Error('The result is not a number.')
  return Math.min(scoreMax, Math.max(0, points))
}
