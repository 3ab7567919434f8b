/** The categories for which texts are scored. */
export const categories = [
  'harassment',
  'hate',
  'illicit',
  'sexual',
  'self-harm',
  'sexual/minors',
] as const
export type Category = (typeof categories)[number]

/** Blocked in every request and every answer. No caller, policy or rollout mode changes that. */
export const alwaysBlocked = ['self-harm', 'sexual/minors'] as const satisfies readonly Category[]

/** Basis points, 0 to 10000. A category that is missing was not scored. */
export type CategoryScores = Readonly<Partial<Record<Category, number>>>
