import { alwaysBlocked, categories } from '#moderation/categories.ts'

const isOrIsIn = (category: string, group: string) =>
  category === group || category.startsWith(`${group}/`)

/** No setting and no policy allows these. */
export const isAlwaysBlocked = (category: string): boolean =>
  alwaysBlocked.some((group) => isOrIsIn(category, group))

/** A flagged `hate` also stands for `hate/threatening`. */
export const isFlagged = (flagged: readonly string[], category: string): boolean =>
  flagged.some((group) => isOrIsIn(category, group))

/** Those of the flagged categories that no scorer gives a score for, so that they cannot be found in calls. */
export const findUncovered = (flagged: readonly string[]): string[] =>
  [...new Set(flagged)].filter((group) => !categories.some((category) => isOrIsIn(category, group)))
