import type { Clock } from '#platform/clock.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { OriginPools } from '#platform/origin-pools.ts'
import { runInTurns, type Steps } from '#text/steps.ts'

import { adapters } from './adapters/adapters.ts'
import type { Category } from './categories.ts'
import {
  chooseScorers,
  combineScores,
  findUnscoredCategories,
  hasUnreadImage,
  type SegmentScores,
} from './combine-scores.ts'
import { createScorer } from './create-scorer.ts'
import { guardScorer } from './guard-scorer.ts'
import { joinShortTexts } from './pieces/join-short-texts.ts'
import { createPostToModel, type PostToModel } from './post-scorer.ts'
import type { ModerationSettings, ScorerSettings } from './read-moderation.ts'
import type { ScoreCache } from './score-cache.ts'
import { ScorerFailure, type ScoringCall, type Segment } from './scorer.ts'

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
  /** The scorers that are not asked at the moment because they fail; for readiness. */
  pausing(): readonly string[]
}

/** Builds the scorers of a configuration, each with its own circuit breaker. */
export function createScorers(settings: ModerationSettings, deps: Deps): Moderation {
  const scorers = settings.scorers.map((each) => {
    const { groupMax } = adapters[each.adapter]
    const joining = joinShortTexts(createScorer(each, toPost(each, deps)), groupMax)
    const scorer = guardScorer(joining, deps)
    return { settings: each, identity: identityOf(each), covers: scorer.covers, scorer }
  })
  type Asked = (typeof scorers)[number]

  function tooLong(scorer: string) {
    deps.metrics.scorerFailures.inc({ scorer, problem: 'too_long' })
    return new ScorerFailure('too_long', 'The texts are too long to be scored.')
  }

  async function ask(asked: Asked, segments: readonly Segment[], call: ScoringCall) {
    const { scorer, identity, settings: own } = asked
    try {
      if (areTooLong(segments)) throw tooLong(scorer.name)
      const scores = await deps.cache.score(scorer, identity, segments, call)
      return { ...asked, thresholds: own.thresholds, scores }
    } catch (error) {
      if (error instanceof ScorerFailure) return { ...asked, failure: error }
      throw error
    }
  }

  return {
    settings,
    covers: new Set(scorers.flatMap(({ covers }) => [...covers])),
    async score(segments, wanted, call) {
      call.signal.throwIfAborted()
      const asked = chooseScorers(scorers, wanted)
      const results = await Promise.all(asked.map((each) => ask(each, segments, call)))
      const answers = results.filter((result) => 'scores' in result)
      const isRead = answers.some(({ scorer }) => scorer.readsImages)
      /** In steps: a request may have tens of thousands of texts. */
      function* combineAll(): Steps<ScoreOutcome['segments']> {
        const combined = []
        for (const [index, segment] of segments.entries()) {
          const result = combineScores(answers, index, wanted)
          const isUnread = hasUnreadImage(segment, result, { wanted, isRead })
          combined.push({ ...result, hasUnreadImage: isUnread })
          yield
        }
        return combined
      }
      const asker = { owner: call.organizationId, signal: call.signal }
      const combined = await runInTurns(combineAll(), asker)
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
    },
    pausing: () =>
      scorers.filter(({ scorer }) => scorer.isPausing()).map(({ scorer }) => scorer.name),
  }
}

/** Scorers with one identity give the same text the same scores. */
const identityOf = ({ name, adapter, place, snapshot }: ScorerSettings) =>
  JSON.stringify([name, adapter, place?.baseUrl, place?.model, snapshot])

/** Longer texts would need too many calls, and too much work before the first of them. */
const textsMaxLength = 4_000_000

const areTooLong = (segments: readonly Segment[]) =>
  segments.reduce((sum, { text }) => sum + text.length, 0) > textsMaxLength

const toPost = ({ place, deadlineMs }: ScorerSettings, { pools }: Deps): PostToModel =>
  place ? createPostToModel(pools, place, deadlineMs) : postNowhere

const postNowhere: PostToModel = () =>
  Promise.reject(new ScorerFailure('misconfigured', 'The scorer has no address.'))
