import { categories, type CategoryScores } from '#moderation/categories.ts'
import { type Scorer, ScorerFailure, type ScoringCall, type Segment } from '#moderation/scorer.ts'
import { runInTurns, type Steps } from '#platform/steps/steps.ts'
import { localGrid } from '#text/windows/window-grid.ts'

import { loadModel } from './load-model.ts'
import type { Model } from './model.ts'
import { type Scores, scoreWindow } from './score-window.ts'
import { scoredWindowsOf, windowStep } from './text-windows.ts'

/**
 * The longest text that `scoreText` accepts: some milliseconds of work, even if every character becomes several when it is
 * normalised.
 */
export const shortTextMax = 8_192
/**
 * The most characters that one call of `score` accepts in all segments together, before and after normalising: about a second
 * of work. One character may become eighteen.
 */
export const charactersMax = 4_000_000

export type LocalScorer = Scorer & {
  /** Scores a text of at most `shortTextMax` characters at once. */
  scoreText(text: string): CategoryScores
  /** Scores a window of an answer, which is normalised and short, at once. */
  scoreWindow(text: string): CategoryScores
}

/**
 * The scorer that ships with the service. It is a fallback and must not be the only guard in production
 * (docs/moderation-model-card.md). Images are not scored: a segment with nothing else has no scores.
 */
export function createLocalScorer(model: Model = loadModel()): LocalScorer {
  return {
    name: 'local',
    covers: new Set(categories),
    scoreText(text) {
      if (text.length > shortTextMax) {
        throw new RangeError(`scoreText takes at most ${shortTextMax} characters; use score.`)
      }
      let scores: Scores | undefined
      for (const windows of scoredWindowsOf(text)) {
        for (const window of windows) scores = higherOf(scores, scoreWindow(model, window))
      }
      return scores ?? {}
    },
    scoreWindow: (text) => scoreWindow(model, text.toLowerCase()),
    score: async (segments, call) => runInTurns(scoreInSteps(model, segments, call), askerOf(call)),
  }
}

const askerOf = ({ organizationId, signal }: ScoringCall) => ({ owner: organizationId, signal })

function* scoreInSteps(
  model: Model,
  segments: readonly Segment[],
  { signal, onScored }: ScoringCall,
): Steps<CategoryScores[]> {
  const length = segments.reduce((sum, { text }) => sum + text.length, 0)
  if (length > charactersMax) throw tooLong()
  const results: CategoryScores[] = []
  let normalisedLength = 0
  for (const [index, segment] of segments.entries()) {
    let scores: Scores | undefined
    for (const windows of scoredTextsOf(segment)) {
      signal.throwIfAborted()
      for (const { text, added } of windows) {
        normalisedLength += added
        if (normalisedLength > charactersMax) throw tooLong()
        scores = higherOf(scores, scoreWindow(model, text))
        yield
      }
      yield
    }
    results.push(scores ?? {})
    onScored?.(index, scores ?? {})
  }
  return results
}

/** `added`: how many of its characters no window before it has. */
type Scored = { readonly text: string; readonly added: number }

/** Longer earlier answers are scored as other texts are: by windows they would take ten times as long. */
const windowedMax = 64 * 1024

/** An earlier answer gets the scores that it got when it was given, window by window. */
function* scoredTextsOf({ text, imageUrl, windows }: Segment): Generator<Scored[], void> {
  if (text === '' && imageUrl !== undefined) return
  if (!windows || text.length > windowedMax) {
    for (const some of scoredWindowsOf(text)) {
      yield some.map((window) => ({ text: window, added: Math.min(window.length, windowStep) }))
    }
    return
  }
  for (const some of windows(localGrid)) {
    yield some.map((window) => ({
      text: window.text.toLowerCase(),
      added: window.end - window.start,
    }))
  }
}

const tooLong = () =>
  new ScorerFailure(
    'too_long',
    `The local scorer takes at most ${charactersMax} characters at once.`,
  )

/** The scores of a text are the highest of its windows. */
function higherOf(before: Scores | undefined, after: Scores): Scores {
  if (before === undefined) return after
  const higher = { ...after }
  for (const category of categories) {
    higher[category] = Math.max(before[category], after[category])
  }
  return higher
}
