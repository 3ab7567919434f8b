import type { Findings } from '#inference/enforcement/findings.ts'
import type { HideText } from '#inference/enforcement/redaction/call-redaction.ts'
import type { Category } from '#moderation/categories.ts'
import { type CallModeration, type CategoryVerdict, joinVerdicts } from '#moderation/moderate.ts'
import type { Segment } from '#moderation/scorer.ts'
import { finish } from '#platform/steps/steps.ts'
import {
  ScorerUnavailable,
  type ScoreWindows,
  type Window,
  type WindowVerdict,
} from '#policies/guard/window-queue.ts'
import type { WindowAtom } from '#policies/rules/answer-rules.ts'
import { isReached } from '#policies/rules/formula.ts'
import type { ScoreMap } from '#policies/rules/score.ts'

/** The scores of one answer. */
export type ScoredAnswer = {
  readonly scoreWindows: ScoreWindows
  /** The highest of all windows so far, of the categories that rules read. One that is missing was not scored everywhere. */
  highest(): ScoreMap
  /** Why a score is missing, where one is. */
  failure?(): unknown
}

type Scoring = {
  checks: CallModeration
  /** Their atoms come after those of the rules. */
  blocking: readonly Category[]
  /** They end nothing, and are only noted. */
  watched?: readonly Category[]
  /** What enforcing rules ask of each window. */
  atoms: readonly WindowAtom[]
  read: ReadonlySet<Category>
  findings: Findings
  hide: HideText | null
}

/**
 * Scores the windows of an answer, for the categories that end it and for the rules that read scores. All windows are asked
 * about at once. Hardly any of them reaches an atom, so only then each is asked about alone, to learn which of them it is;
 * scorers are not asked again for scores that they gave.
 */
export function scoreAnswer(scoring: Scoring): ScoredAnswer {
  const { checks, findings } = scoring
  const highest = new Map<string, number>([...scoring.read].map((category) => [category, 0]))
  let failure: unknown

  async function check(windows: readonly Window[], signal: AbortSignal) {
    const segments = windows.map(({ text }) => ({ role: 'assistant' as const, text }))
    const local = await checks.checkLocally(segments, signal)
    const verdict = local.blocked
      ? local
      : joinVerdicts(local, await checks.checkRemotely(toSent(segments, scoring), signal))
    if (verdict.isDegraded) findings.isDegraded = true
    failure ??= verdict.failures[0]
    const noted = scoring.watched?.filter((category) => verdict.reached.includes(category))
    if (noted) findings.configured?.noteCategories(noted)
    return { scores: verdict.scores, ...judge(verdict, scoring) }
  }

  return {
    highest: () => highest,
    failure: () => failure,
    async scoreWindows(windows, signal) {
      const together = await check(windows, signal)
      const isSplit = together.atoms.length > 0 && windows.length > 1
      const checked = isSplit
        ? await Promise.all(windows.map((window) => check([window], signal)))
        : [together]
      for (const { scores } of checked) keepHighest(highest, scores)
      return windows.map((_, number) => toVerdict(checked[number] ?? together))
    },
  }
}

/** Windows are short. */
const toSent = (segments: readonly Segment[], { hide }: Scoring): readonly Segment[] =>
  hide ? segments.map((each) => ({ ...each, text: finish(hide(each.text)) })) : segments

type Judged = { readonly atoms: readonly number[]; readonly error: ScorerUnavailable | null }

const toVerdict = ({ atoms, error }: Judged): WindowVerdict => (error ? { atoms, error } : atoms)

/** What was reached, and whether a score is missing that decides about an answer which is not blocked anyway. */
function judge(verdict: CategoryVerdict, { atoms, blocking }: Scoring): Judged {
  const { blocked, isUnavailable } = verdict
  const scores: ScoreMap = verdict.scores
  const reached = [...atoms.entries()].flatMap(([number, atom]) =>
    atom.kind === 'score' && isReached(atom, scores) ? number : [],
  )
  if (blocked) return { atoms: [...reached, atoms.length + blocking.indexOf(blocked)], error: null }
  const isMissing = atoms.some((atom) => atom.kind === 'score' && !scores.has(atom.category))
  const isFailed = isUnavailable || isMissing
  const [cause] = verdict.failures
  const error = isFailed ? new ScorerUnavailable('a score is missing', { cause }) : null
  return { atoms: reached, error }
}

function keepHighest(highest: Map<string, number>, scores: ScoreMap) {
  for (const [category, known] of highest) {
    const score = scores.get(category)
    if (score === undefined) highest.delete(category)
    else highest.set(category, Math.max(known, score))
  }
}
