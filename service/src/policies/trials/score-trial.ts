import type { Principal } from '#http/principal.ts'
import type { Asker } from '#platform/steps/steps.ts'
import { isReached, type ScoreAtom } from '#policies/rules/formula.ts'
import type { ScoreMap } from '#policies/rules/score.ts'
import { cutAll } from '#text/windows/window-cutter.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

type ScoredText = { readonly text: string; readonly direction: 'request' | 'response' }

/** Scores a text in these categories; one that is missing in the result could not be scored. */
export type ScoreText = (
  scored: ScoredText,
  categories: ReadonlySet<string>,
  asker: Asker,
) => Promise<ScoreMap>

/** For one caller: what is asked for it counts in its organization's limits. */
export type ScoreTextFor = (caller: Principal) => ScoreText

/** What a text was scored with: a request as a whole, an answer in the windows in which it would be guarded. */
export type TrialScores = {
  readonly highest: ScoreMap
  /** Where in the normalised text the atom becomes true; Infinity: nowhere. */
  startOf(atom: ScoreAtom): number
}

const unscored: TrialScores = { highest: new Map(), startOf: () => Infinity }

const atOnce = 4

export type Scoring = {
  categories: ReadonlySet<string>
  scoreText: ScoreText
  /** How answers are cut for the scorers of a category. */
  gridOf(category: string): WindowGrid
  asker: Asker
}

type ScoredWindow = { readonly start: number; readonly scores: ScoreMap }

/** `text` is normalised. */
export async function scoreTrial(scored: ScoredText, scoring: Scoring): Promise<TrialScores> {
  const { categories, gridOf } = scoring
  if (categories.size === 0) return unscored
  const byGrid = Map.groupBy(categories, (category) =>
    scored.direction === 'request' ? null : gridOf(category),
  )
  const [highest, scoredIn] = [new Map<string, number>(), new Map<string, ScoredWindow[]>()]
  for (const [grid, some] of byGrid) {
    const windows = await scoreWindows(scored, { ...scoring, categories: new Set(some) }, grid)
    for (const category of some) {
      scoredIn.set(category, windows)
      const scores = windows.map(({ scores: each }) => each.get(category))
      if (scores.every((score) => score !== undefined))
        highest.set(category, Math.max(0, ...scores))
    }
  }
  const startOf = (atom: ScoreAtom) =>
    scoredIn.get(atom.category)?.find(({ scores }) => isReached(atom, scores))?.start ?? Infinity
  return { highest, startOf }
}

/** Without a grid, the text as a whole. */
async function scoreWindows(
  { text, direction }: ScoredText,
  { categories, scoreText, asker }: Scoring,
  grid: WindowGrid | null,
): Promise<ScoredWindow[]> {
  const windows = grid ? cutAll(text, grid) : [{ text, start: 0 }]
  const scored: ScoredWindow[] = []
  for (let first = 0; first < windows.length; first += atOnce) {
    const some = windows.slice(first, first + atOnce).map(async (window) => ({
      start: window.start,
      scores: await scoreText({ text: window.text, direction }, categories, asker),
    }))
    scored.push(...(await Promise.all(some)))
  }
  return scored
}
