import type { AnswerRules } from '#policies/rules/answer-rules.ts'

/**
 * How much is held back if the last `length` characters are, too. Rules, windows and terms hold the same characters, the last
 * ones, so the longest of them counts.
 */
export function holdAtLeast(hold: AnswerRules['hold'], length: number): number | 'full' {
  if (hold === 'full') return hold
  return hold === 'none' ? length : Math.max(hold, length)
}
