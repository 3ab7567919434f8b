import type { Principal } from '#http/principal.ts'
import type { Asker } from '#platform/steps/steps.ts'
import { WindowCutter } from '#policies/guard/windows.ts'
import { isReached, type ScoreAtom } from '#policies/rules/formula.ts'
import type { ScoreMap } from '#policies/rules/score.ts'

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
  asker: Asker
}

/** `text` is normalised. */
export async function scoreTrial(
  { text, direction }: ScoredText,
  { categories, scoreText, asker }: Scoring,
): Promise<TrialScores> {
  if (categories.size === 0) return unscored
  const windows = direction === 'request' ? [{ text, start: 0 }] : trialWindowsOf(text)
  const scored: { start: number; scores: ScoreMap }[] = []
  for (let first = 0; first < windows.length; first += atOnce) {
    const some = windows.slice(first, first + atOnce).map(async (window) => ({
      start: window.start,
      scores: await scoreText({ text: window.text, direction }, categories, asker),
    }))
    scored.push(...(await Promise.all(some)))
  }
  return {
    highest: highestOf(
      categories,
      scored.map(({ scores }) => scores),
    ),
    startOf: (atom) => scored.find(({ scores }) => isReached(atom, scores))?.start ?? Infinity,
  }
}

/** Of a complete answer that is normalised. */
export function trialWindowsOf(text: string): { text: string; start: number }[] {
  const cutter = new WindowCutter()
  cutter.add(text)
  const windows: { text: string; start: number }[] = []
  for (let window = cutter.next(true); window; window = cutter.next(true)) windows.push(window)
  return windows
}

function highestOf(categories: ReadonlySet<string>, all: readonly ScoreMap[]) {
  const known = [...categories].filter((category) => all.every((scores) => scores.has(category)))
  const highest = (category: string) => Math.max(0, ...all.map((each) => each.get(category) ?? 0))
  return new Map(known.map((category) => [category, highest(category)]))
}
