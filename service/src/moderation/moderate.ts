import { localGrid, type WindowGrid } from '#text/windows/window-grid.ts'

import { alwaysBlocked, type Category, type CategoryScores } from './categories.ts'
import type { Moderation, ScoreOutcome } from './create-scorers.ts'
import type { LocalScorer } from './local/local-scorer.ts'
import { ScorerFailure, type ScoringCall, type Segment } from './scorer.ts'

/** What the scores of some texts mean for the categories that a call may not have. */
export type CategoryVerdict = {
  /** The first category that was reached. */
  readonly blocked: Category | null
  /** All categories that were reached, among those that were looked for. */
  readonly reached: readonly Category[]
  /** Something that must not pass unscored was not scored, and nothing else blocks the call. */
  readonly isUnavailable: boolean
  /** The same, because a scorer does not accept these texts, so that trying again does not help. */
  readonly isUnscorable: boolean
  /** A scorer failed. Another one decided, or none did and the operator allows that. */
  readonly isDegraded: boolean
  /** Some image was not scored. */
  readonly hasUnscoredImage: boolean
  /** The highest score, 0 to 1, of each category that rules read. A category that is missing was not scored. */
  readonly scores: ReadonlyMap<Category, number>
  /** Why wanted scores are missing; the failures that decide come first. */
  readonly failures: readonly ScorerFailure[]
}

/** Moderation as one call needs it: the configuration and the categories stay the same until it ends. */
export type CallModeration = {
  /** Scores the categories that no configured scorer covers, in this process. This comes first, because it costs nothing. */
  checkLocally(segments: readonly Segment[], signal: AbortSignal): Promise<CategoryVerdict>
  /** Asks the configured scorers. */
  checkRemotely(segments: readonly Segment[], signal: AbortSignal): Promise<CategoryVerdict>
  /** The verdict of `checkRemotely`, at once; undefined where a scorer has to be asked. */
  findKnown(segments: readonly Segment[]): CategoryVerdict | undefined
  /** The verdict of `checkLocally` on a window of an answer, at once. */
  checkWindow(text: string): CategoryVerdict
  /** How answers are checked by both; null where one of them has nothing to look for. */
  readonly inAnswers: { readonly local: AnswerCheck | null; readonly remote: AnswerCheck | null }
}

/** What is looked for in answers, and how they are cut for that. */
export type AnswerCheck = {
  readonly categories: ReadonlySet<Category>
  readonly grid: WindowGrid
}

type Options = {
  moderation: Moderation
  /** The scorer in this process. It covers all categories, and fails only at texts that are too long. */
  local: Pick<LocalScorer, 'score' | 'scoreWindow'>
  /** In the order in which they are reported. */
  blocking: readonly Category[]
  /** Categories that are only reported when they are reached. They block nothing, and nothing fails if they have no score. */
  watched?: readonly Category[]
  /** Categories whose scores are returned whatever they are. */
  read?: ReadonlySet<Category>
  organizationId: string
} & Pick<ScoringCall, 'questions' | 'isKnownOnly'>

/** The local scorer is calibrated for this threshold in all categories. */
const localThreshold = 6000

const passed: CategoryVerdict = {
  blocked: null,
  reached: [],
  isUnavailable: false,
  isUnscorable: false,
  isDegraded: false,
  hasUnscoredImage: false,
  scores: new Map(),
  failures: [],
}

/** The categories that a call with these `flagged_categories` may not have. */
export const blockingCategories = (flagged: readonly Category[]): readonly Category[] => [
  ...new Set([...alwaysBlocked, ...flagged]),
]

/** What follows from the categories that a call wants to know about. */
type Plan = {
  readonly reported: readonly Category[]
  /** What the configured scorers look for, and what is left to the one in this process. */
  readonly remote: ReadonlySet<Category>
  readonly own: readonly Category[]
  readonly ownBlocking: readonly Category[]
  readonly ownReported: readonly Category[]
  readonly ownRead: readonly Category[]
  readonly inAnswers: CallModeration['inAnswers']
}

/** Most calls want the same categories, so their plan is made once for each configuration. */
const plansMost = 1000
const plansOf = new WeakMap<Moderation, Map<string, Plan>>()

function planOf({ moderation, blocking, watched = [], read = new Set() }: Options): Plan {
  const plans = plansOf.get(moderation) ?? new Map<string, Plan>()
  plansOf.set(moderation, plans)
  const key = `${blocking.join()};${watched.join()};${[...read].join()}`
  const known = plans.get(key)
  if (known) return known
  const reported = [...blocking, ...watched]
  const wanted = [...new Set([...reported, ...read])]
  const remote = new Set(wanted.filter((category) => moderation.covers.has(category)))
  const isOwn = (category: Category) => !remote.has(category)
  const own = wanted.filter(isOwn)
  const plan = {
    reported,
    remote,
    own,
    ownBlocking: blocking.filter(isOwn),
    ownReported: reported.filter(isOwn),
    ownRead: own.filter((category) => read.has(category)),
    inAnswers: {
      local: own.length > 0 ? { categories: new Set(own), grid: localGrid } : null,
      remote: remote.size > 0 ? { categories: remote, grid: moderation.grid } : null,
    },
  }
  if (plans.size < plansMost) plans.set(key, plan)
  return plan
}

const localVerdictOf = (scores: readonly CategoryScores[], plan: Plan): CategoryVerdict => ({
  ...passed,
  ...findReached(scores, plan.ownBlocking),
  reached: findReached(scores, plan.ownReported).reached,
  scores: highestOf(plan.ownRead, scores),
})

export function openModeration(options: Options): CallModeration {
  const { moderation, local, blocking, read = new Set() } = options
  const { organizationId, questions, isKnownOnly } = options
  const plan = planOf(options)
  const { reported, remote, own } = plan

  const toLocalVerdict = (scores: readonly CategoryScores[]) => localVerdictOf(scores, plan)

  function toRemoteVerdict(outcome: ScoreOutcome): CategoryVerdict {
    if (read.size === 0 && isNothing(outcome)) return passed
    const { segments, unscored, failed } = outcome
    const found = new Set(segments.flatMap((segment) => segment.reached))
    const known = [...remote].filter((each) => read.has(each) && !unscored.has(each))
    const allScores = segments.map(({ scores }) => scores)
    return {
      ...passed,
      blocked: blocking.find((category) => found.has(category)) ?? null,
      reached: reported.filter((category) => found.has(category)),
      isDegraded: failed.length > 0,
      hasUnscoredImage: segments.some((segment) => segment.hasUnreadImage),
      scores: highestOf(known, allScores),
      failures: failed.map(({ failure }) => failure),
    }
  }

  return {
    inAnswers: plan.inAnswers,
    async checkLocally(segments, signal) {
      if (own.length === 0) return passed
      const scores = await scoreLocally(options, segments, signal)
      if (!(scores instanceof ScorerFailure)) return toLocalVerdict(scores)
      const failures = [scores]
      // Where only rules wanted to know the scores, what is missing is up to them.
      return plan.ownBlocking.length > 0
        ? { ...passed, ...unscorable, failures }
        : { ...passed, failures }
    },
    checkWindow: (text) => (own.length === 0 ? passed : toLocalVerdict([local.scoreWindow(text)])),
    findKnown(segments) {
      if (remote.size === 0) return undefined
      const outcome = moderation.findKnown(segments, remote, organizationId)
      return outcome && toRemoteVerdict(outcome)
    },
    async checkRemotely(segments, signal) {
      if (remote.size === 0) return { ...passed, hasUnscoredImage: segments.some(hasImage) }
      const call = { signal, organizationId, questions, isKnownOnly }
      const outcome = await moderation.score(segments, remote, call)
      const verdict = toRemoteVerdict(outcome)
      const missing = blocking.filter((category) => outcome.unscored.has(category))
      if (verdict.blocked || missing.length === 0) return verdict
      const scores = await scoreLocally(options, segments, signal)
      const degraded = { ...verdict, isDegraded: true }
      if (scores instanceof ScorerFailure) {
        return { ...degraded, ...unscorable, failures: [scores, ...verdict.failures] }
      }
      const standIn = findReached(scores, missing)
      if (standIn.blocked) return { ...degraded, ...standIn }
      return { ...degraded, ...judgeGap(outcome, missing, moderation.settings.degraded) }
    },
  }
}

/** The scores of the local scorer, or the failure if it does not accept the texts. */
async function scoreLocally(
  { local, organizationId }: Options,
  segments: readonly Segment[],
  signal: AbortSignal,
): Promise<readonly CategoryScores[] | ScorerFailure> {
  const texts = segments.filter(({ text }) => text !== '')
  if (texts.length === 0) return []
  try {
    return await local.score(texts, { signal, organizationId })
  } catch (error) {
    if (error instanceof ScorerFailure) return error
    throw error
  }
}

const unscorable = { isUnavailable: true, isUnscorable: true }

/** Without texts the highest score is 0. */
const highestOf = (among: readonly Category[], scores: readonly CategoryScores[]) =>
  new Map(
    among.map((category) => [
      category,
      scores.reduce((highest, each) => Math.max(highest, each[category] ?? 0), 0) / 10_000,
    ]),
  )

/** The categories, among these, that the local scorer has found. */
function findReached(scores: readonly CategoryScores[], among: readonly Category[]) {
  const reached = among.filter((category) =>
    scores.some((each) => (each[category] ?? 0) >= localThreshold),
  )
  return { blocked: reached[0] ?? null, reached }
}

/** So it is with most windows of most answers. */
const isNothing = ({ segments, failed }: ScoreOutcome): boolean =>
  failed.length === 0 &&
  segments.every(({ reached, hasUnreadImage }) => reached.length === 0 && !hasUnreadImage)

const hasImage = ({ imageUrl }: Segment) => imageUrl !== undefined

/**
 * Whether texts must be refused although the local scorer has not blocked them. Only an outage may let them pass. A scorer that
 * refuses this gateway stays so until the operator acts. And if failures that depend on the texts let calls pass, callers could
 * choose texts that switch moderation off.
 */
function judgeGap(
  { failed }: ScoreOutcome,
  missing: readonly Category[],
  degraded: 'refuse' | 'allow',
): Pick<CategoryVerdict, 'isUnavailable' | 'isUnscorable'> {
  const failures = failed
    .filter(({ covers }) => missing.some((category) => covers.has(category)))
    .map(({ failure }) => failure)
  const isRefused = degraded === 'refuse' && missing.some(isAlwaysBlocked)
  return {
    isUnavailable: isRefused || failures.some(({ isOutage }) => !isOutage),
    isUnscorable: failures.some(({ isByContent }) => isByContent),
  }
}

const isAlwaysBlocked = (category: Category) =>
  (alwaysBlocked as readonly Category[]).includes(category)

/**
 * Why model calls are refused until the operator has configured moderation of the always-blocked categories; null if they are
 * not.
 */
export function findModerationGap({ settings, covers }: Moderation): string | null {
  const missing = alwaysBlocked.filter((category) => !covers.has(category))
  if (missing.length === 0 || settings.acceptsLocalOnly) return null
  return `no scorer covers ${missing.join(' and ')}: name one in MODERATION_FILE, or accept the local one with accept_local_only (docs/moderation.md)`
}

/** Both verdicts on the same texts. */
export const joinVerdicts = (one: CategoryVerdict, other: CategoryVerdict): CategoryVerdict => ({
  blocked: one.blocked ?? other.blocked,
  reached: [...new Set([...one.reached, ...other.reached])],
  isUnavailable: one.isUnavailable || other.isUnavailable,
  isUnscorable: one.isUnscorable || other.isUnscorable,
  isDegraded: one.isDegraded || other.isDegraded,
  hasUnscoredImage: one.hasUnscoredImage || other.hasUnscoredImage,
  scores: new Map([...one.scores, ...other.scores]),
  failures: [...one.failures, ...other.failures],
})
