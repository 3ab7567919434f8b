import type { Findings } from '#inference/enforcement/findings.ts'
import type { HideText } from '#inference/enforcement/redaction/call-redaction.ts'
import type { Category } from '#moderation/categories.ts'
import type { AnswerCheck, CallModeration, CategoryVerdict } from '#moderation/moderate.ts'
import type { Segment } from '#moderation/scorer.ts'
import type { Metrics } from '#platform/metrics.ts'
import { finish } from '#platform/steps/steps.ts'
import {
  ScorerUnavailable,
  type Window,
  type WindowScorer,
  type WindowVerdict,
} from '#policies/guard/window-queue.ts'
import type { WindowAtom } from '#policies/rules/answer-rules.ts'
import { isReached, type ScoreAtom } from '#policies/rules/formula.ts'
import type { ScoreMap } from '#policies/rules/score.ts'

/** The scores of one answer. */
export type ScoredAnswer = {
  /** The scorer in this process, and the configured ones, as far as they have something to look for. */
  readonly scorers: readonly WindowScorer[]
  /** The highest of all windows so far, of the categories that rules read. One that is missing was not scored everywhere. */
  highest(): ScoreMap
  /** Why a score is missing, where one is. */
  failure?(): unknown
}

/** What is asked about an answer, and where it is noted. */
export type AskedAnswer = {
  /** What enforcing rules ask of each window. */
  atoms: readonly WindowAtom[]
  hide: HideText | null
  /** Those of the call, or others for a text that is no part of it. */
  findings: Findings
}

type Scoring = AskedAnswer & {
  checks: CallModeration
  /** Their atoms come after those of the rules. */
  blocking: readonly Category[]
  /** They end nothing, and are only noted. */
  watched?: readonly Category[]
  read: ReadonlySet<Category>
  metrics: Pick<Metrics, 'answerWindows'>
}

/** Scores the windows of an answer, for the categories that end it and for the rules that read scores. */
export function scoreAnswer(scoring: Scoring): ScoredAnswer {
  const { checks, read, findings, watched = [] } = scoring
  const { local, remote } = checks.inAnswers
  const highest = new Map<string, number>([...read].map((category) => [category, 0]))
  let failure: unknown

  function note(verdict: CategoryVerdict) {
    if (verdict.isDegraded) findings.isDegraded = true
    failure ??= verdict.failures[0]
    if (verdict.reached.length === 0) return
    const noted = watched.filter((category) => verdict.reached.includes(category))
    findings.configured?.noteCategories(noted)
  }
  function keep(scores: ScoreMap, { categories }: AnswerCheck) {
    if (highest.size === 0) return
    for (const category of categories) {
      const known = highest.get(category)
      if (known === undefined) continue
      const score = scores.get(category)
      if (score === undefined) highest.delete(category)
      else highest.set(category, Math.max(known, score))
    }
  }

  const noting = { ...scoring, note, keep }
  const scorers: WindowScorer[] = []
  if (local) scorers.push(scoreHere(local, noting))
  if (remote) scorers.push(scoreElsewhere(remote, noting))
  return { scorers, highest: () => highest, failure: () => failure }
}

type Noting = Scoring & {
  note(verdict: CategoryVerdict): void
  keep(scores: ScoreMap, check: AnswerCheck): void
}

/** The scorer in this process has its verdict at once. */
function scoreHere(check: AnswerCheck, { checks, note, keep, ...scoring }: Noting): WindowScorer {
  const findAtoms = atomsOf(check, scoring)
  const count = scoring.metrics.answerWindows.labels({ source: 'local' })
  return {
    grid: check.grid,
    findKnown({ text }) {
      count.inc()
      const verdict = checks.checkWindow(text)
      note(verdict)
      keep(verdict.scores, check)
      return knownAtoms(findAtoms(verdict))
    },
    scoreWindows: () => Promise.reject(new Error('Every window is known.')),
  }
}

/**
 * All windows are asked about at once. Hardly any of them reaches an atom, so only then each is asked about alone, to learn which of
 * them it is; scorers are not asked again for scores that they gave.
 */
function scoreElsewhere(
  check: AnswerCheck,
  { checks, note, keep, ...scoring }: Noting,
): WindowScorer {
  const findAtoms = atomsOf(check, scoring)
  const toSegment = ({ text }: Window): Segment => ({
    role: 'assistant',
    // Windows are short.
    text: scoring.hide ? finish(scoring.hide(text)) : text,
  })
  function read(verdict: CategoryVerdict) {
    note(verdict)
    return { scores: verdict.scores, ...findAtoms(verdict) }
  }
  const countKnown = scoring.metrics.answerWindows.labels({ source: 'known' })

  return {
    grid: check.grid,
    findKnown(window) {
      const verdict = checks.findKnown([toSegment(window)])
      if (!verdict) return undefined
      countKnown.inc()
      note(verdict)
      keep(verdict.scores, check)
      return knownAtoms(findAtoms(verdict))
    },
    async scoreWindows(windows, signal) {
      scoring.metrics.answerWindows.inc({ source: 'asked' }, windows.length)
      const segments = windows.map(toSegment)
      const ask = async (some: readonly Segment[]) => read(await checks.checkRemotely(some, signal))
      const together = await ask(segments)
      const isSplit = together.atoms.length > 0 && windows.length > 1
      const checked = isSplit
        ? await Promise.all(segments.map((segment) => ask([segment])))
        : [together]
      for (const { scores } of checked) keep(scores, check)
      return windows.map((_, number) => toVerdict(checked[number] ?? together))
    },
  }
}

type Found = { readonly atoms: readonly number[]; readonly error: ScorerUnavailable | null }
const nothingFound: Found = { atoms: [], error: null }

/** A verdict with a missing score is not known: the window is asked about, which fails where it cannot be. */
const knownAtoms = ({ atoms, error }: Found) => (error ? undefined : atoms)

const toVerdict = ({ atoms, error }: Found): WindowVerdict => (error ? { atoms, error } : atoms)

/** What was reached, and whether a score is missing that decides about an answer which is not blocked anyway. */
function atomsOf(
  { categories }: AnswerCheck,
  { atoms, blocking }: Pick<Scoring, 'atoms' | 'blocking'>,
) {
  const asked = [...atoms.entries()].filter(
    (entry): entry is [number, ScoreAtom] =>
      entry[1].kind === 'score' && (categories as ReadonlySet<string>).has(entry[1].category),
  )
  return ({ blocked, isUnavailable, failures, scores }: CategoryVerdict): Found => {
    if (!blocked && !isUnavailable && asked.length === 0) return nothingFound
    const known: ScoreMap = scores
    const reached: number[] = []
    for (const [number, atom] of asked) if (isReached(atom, known)) reached.push(number)
    if (blocked) {
      return { atoms: [...reached, atoms.length + blocking.indexOf(blocked)], error: null }
    }
    const isMissing = asked.some(([, { category }]) => !known.has(category))
    if (!isUnavailable && !isMissing) return { atoms: reached, error: null }
    const [cause] = failures
    return { atoms: reached, error: new ScorerUnavailable('a score is missing', { cause }) }
  }
}
