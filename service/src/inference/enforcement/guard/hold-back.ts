import type { AnswerRules } from '#policies/rules/answer-rules.ts'
import { heldMostBy, type WindowGrid } from '#text/windows/window-grid.ts'

/**
 * How much is held back if the last `length` characters are, too. Rules, windows and terms hold the same characters, the last
 * ones, so the longest of them counts.
 */
export function holdAtLeast(hold: AnswerRules['hold'], length: number): number | 'full' {
  if (hold === 'full') return hold
  return hold === 'none' ? length : Math.max(hold, length)
}

type Held = {
  /** By the rules. */
  hold: AnswerRules['hold']
  /** Of the scorers and the judge that must clear the answer. */
  grids: readonly WindowGrid[]
  /** What rewrites the answer, such as redaction: it holds what the guard has let go until it is final. */
  rewriting: readonly ({ readonly hold: number } | null)[]
}

/** How much of an answer is held back at most. */
export function holdOfAnswer({ hold, grids, rewriting }: Held): AnswerRules['hold'] {
  const held = grids.length === 0 ? hold : holdAtLeast(hold, Math.max(...grids.map(heldMostBy)))
  if (typeof held !== 'number') return held
  return rewriting.reduce((sum, each) => sum + (each?.hold ?? 0), held)
}
