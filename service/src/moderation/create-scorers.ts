import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { OriginPools } from '#platform/origin-pools.ts'
import { runInTurns, type Steps } from '#platform/steps/steps.ts'
import { fineGrid, heldMostBy, type WindowGrid } from '#text/windows/window-grid.ts'

import { adapters } from './adapters/adapters.ts'
import type { Category, CategoryScores } from './categories.ts'
import {
  chooseScorers,
  combineScores,
  findUnscoredCategories,
  hasUnreadImage,
  type ScorerAnswer,
  type SegmentScores,
} from './combine-scores.ts'
import { createScorer } from './create-scorer.ts'
import { guardScorer } from './guard-scorer.ts'
import { joinShortTexts } from './pieces/join-short-texts.ts'
import { createPostToModel, type PostToModel } from './post-scorer.ts'
import type { ModerationSettings, ScorerSettings } from './read-moderation.ts'
import type { ScoreCache } from './score-cache.ts'
import { type Scorer, ScorerFailure, type ScoringCall, type Segment } from './scorer.ts'

type Deps = {
  pools: Pick<OriginPools, 'collect'>
  cache: ScoreCache
  now: Clock
  log: Log
  metrics: Metrics
}

/** A scorer that was asked and has no scores. */
type FailedScorer = {
  readonly name: string
  readonly covers: ReadonlySet<Category>
  readonly failure: ScorerFailure
}

/** Everything that the scorers have returned for some segments, failures included. Nothing is decided here. */
export type ScoreOutcome = {
  /**
   * One per segment, in their order. `hasUnreadImage`: the segment has an image in which some always-blocked category was not
   * looked for.
   */
  readonly segments: readonly (SegmentScores & { readonly hasUnreadImage: boolean })[]
  /**
   * Wanted categories for which some text has no score, because no scorer covers them or those that do have failed. Also
   * always-blocked categories that a failed scorer would have looked for in an image.
   */
  readonly unscored: ReadonlySet<Category>
  readonly failed: readonly FailedScorer[]
}

/** The moderation that is in force. A call takes it once and keeps it, so that one configuration decides about all of it. */
export type Moderation = {
  readonly settings: ModerationSettings
  /** The categories that some configured scorer covers. */
  readonly covers: ReadonlySet<Category>
  /** Throws only the reason of the signal, and what `questions` or `isKnownOnly` of the call throw. */
  score(
    segments: readonly Segment[],
    wanted: ReadonlySet<Category>,
    call: ScoringCall,
  ): Promise<ScoreOutcome>
  /** The same where every score is known, at once; undefined where a scorer has to be asked. For some short texts. */
  findKnown(
    segments: readonly Segment[],
    wanted: ReadonlySet<Category>,
    organizationId: string,
  ): ScoreOutcome | undefined
  /** How answers are cut. All scorers share one grid: text leaves when all of them have passed it, so the widest steps count. */
  readonly grid: WindowGrid
  /** For readiness: which scorers are not asked at the moment, because they fail. */
  pausing(): readonly string[]
}

type Identified = { readonly identity: string; readonly settings: ScorerSettings }
type Wanted = {
  segments: readonly Segment[]
  wanted: ReadonlySet<Category>
  organizationId: string
}

function findKnownScores(
  cache: ScoreCache,
  scorers: readonly Identified[],
  { segments, wanted, organizationId }: Wanted,
): ScoreOutcome | undefined {
  const answers: ScorerAnswer[] = []
  for (const { identity, settings } of scorers) {
    const scores = cache.findAll({ organizationId, identity }, segments)
    if (!scores) return undefined
    answers.push({ thresholds: settings.thresholds, scores })
  }
  const combined = segments.map((_, index) => {
    const { scores, reached } = combineScores(answers, index, wanted)
    return { scores, reached, hasUnreadImage: false }
  })
  const isMissing = combined.some(
    ({ scores }, index) => segments[index]?.text !== '' && lacksSome(scores, wanted),
  )
  return isMissing ? undefined : { segments: combined, unscored: nothing, failed: [] }
}

const nothing: ReadonlySet<Category> = new Set()

function lacksSome(scores: CategoryScores, wanted: ReadonlySet<Category>): boolean {
  for (const category of wanted) if (scores[category] === undefined) return true
  return false
}

/** A scorer that was asked and has answered, or has failed. */
type Asked = Pick<ScorerSettings, 'thresholds'> & { readonly scorer: Scorer } & (
    | { readonly scores: readonly CategoryScores[] }
    | { readonly failure: ScorerFailure }
  )

/** In steps: a request may have tens of thousands of texts. */
function* combineAll(
  results: readonly Asked[],
  segments: readonly Segment[],
  wanted: ReadonlySet<Category>,
): Steps<ScoreOutcome> {
  const answers = results.filter((result) => 'scores' in result)
  const isRead = answers.some(({ scorer }) => scorer.readsImages)
  const combined = []
  for (const [index, segment] of segments.entries()) {
    const result = combineScores(answers, index, wanted)
    const isUnread = hasUnreadImage(segment, result, { wanted, isRead })
    combined.push({ ...result, hasUnreadImage: isUnread })
    yield
  }
  const failed = results
    .filter((result) => 'failure' in result)
    .map(({ scorer: { name, covers, readsImages = false }, failure }) => ({
      name,
      covers,
      readsImages,
      failure,
    }))
  const unscored = findUnscoredCategories({ segments, results: combined, wanted, failed })
  return { segments: combined, unscored, failed }
}

/** Builds the scorers of a configuration, each with its own circuit breaker. */
export function createScorers(settings: ModerationSettings, deps: Deps): Moderation {
  const scorers = settings.scorers.map((each) => {
    const { groupMax } = adapters[each.adapter]
    const joining = joinShortTexts(createScorer(each, toPost(each, deps)), groupMax)
    const scorer = guardScorer(joining, deps)
    return { settings: each, identity: identityOf(each), covers: scorer.covers, scorer }
  })
  const grid = widestOf(settings.scorers)

  const chosen = new WeakMap<ReadonlySet<Category>, typeof scorers>()
  /** Most calls want the same categories, and all windows of an answer do. */
  function choose(wanted: ReadonlySet<Category>): typeof scorers {
    const known = chosen.get(wanted)
    if (known) return known
    const asked = chooseScorers(scorers, wanted)
    chosen.set(wanted, asked)
    return asked
  }

  function tooLong(scorer: string) {
    deps.metrics.scorerFailures.inc({ scorer, problem: 'too_long' })
    return new ScorerFailure('too_long', 'The texts are too long to be scored.')
  }

  async function ask(
    { scorer, identity, settings: { thresholds } }: (typeof scorers)[number],
    segments: readonly Segment[],
    call: ScoringCall,
  ): Promise<Asked> {
    try {
      if (areTooLong(segments)) throw tooLong(scorer.name)
      const scores = await deps.cache.score({ scorer, identity, grid }, segments, call)
      return { scorer, thresholds, scores }
    } catch (error) {
      if (error instanceof ScorerFailure) return { scorer, thresholds, failure: error }
      throw error
    }
  }

  return {
    settings,
    covers: new Set(scorers.flatMap(({ covers }) => [...covers])),
    grid,
    findKnown: (segments, wanted, organizationId) =>
      findKnownScores(deps.cache, choose(wanted), { segments, wanted, organizationId }),
    async score(segments, wanted, call) {
      call.signal.throwIfAborted()
      const asked = choose(wanted)
      const results = await Promise.all(asked.map((each) => ask(each, segments, call)))
      const asker = { owner: call.organizationId, signal: call.signal }
      return runInTurns(combineAll(results, segments, wanted), asker)
    },
    pausing: () =>
      scorers.filter(({ scorer }) => scorer.isPausing()).map(({ scorer }) => scorer.name),
  }
}

/** Scorers with one identity give the same text the same scores. */
const identityOf = ({ name, adapter, place, snapshot }: ScorerSettings) =>
  JSON.stringify([name, adapter, place?.baseUrl, place?.model, snapshot])

const widestOf = (scorers: readonly ScorerSettings[]): WindowGrid =>
  scorers
    .map(({ grid }) => grid)
    .reduce((one, other) => (heldMostBy(other) > heldMostBy(one) ? other : one), fineGrid)

/** More would need too many calls, and too much work before the first of them. */
const textsMaxLength = 4_000_000

const areTooLong = (segments: readonly Segment[]) =>
  segments.reduce((sum, { text }) => sum + text.length, 0) > textsMaxLength

const toPost = ({ place, deadlineMs }: ScorerSettings, { pools }: Deps): PostToModel =>
  place ? createPostToModel(pools, place, deadlineMs) : postNowhere

const postNowhere: PostToModel = () =>
  Promise.reject(new ScorerFailure('misconfigured', 'The scorer has no address.'))
