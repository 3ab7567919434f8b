import { createBreaker } from '#platform/breaker.ts'
import type { Clock } from '#platform/clock.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { type Scorer, ScorerFailure, type ScorerProblem, type Segment } from './scorer.ts'

type Deps = { now: Clock; log: Log; metrics: Metrics }

/** A scorer with a circuit breaker, which is not asked while it fails. */
export type GuardedScorer = Scorer & { isPausing(): boolean }

/**
 * Failures that say something about the scorer. All others depend on the text or on this process; otherwise a caller could keep
 * every organization from the scorer by sending a few odd texts.
 */
const countsAgainst: ReadonlySet<ScorerProblem> = new Set<ScorerProblem>([
  'misconfigured',
  'unreachable',
  'timeout',
  'busy',
  'error',
])

/** The scorer loads these images itself, from servers that a caller chooses. Those may be slow, or may make the scorer fail. */
const loadsImages = (segments: readonly Segment[]) =>
  segments.some(({ imageUrl }) => imageUrl !== undefined && !imageUrl.startsWith('data:'))

function byImage(failure: ScorerFailure, segments: readonly Segment[]): ScorerFailure {
  const { kind } = failure
  const mayBeByImage = (kind === 'timeout' || kind === 'error') && loadsImages(segments)
  return mayBeByImage ? failure.asByCaller() : failure
}

/** Adds a circuit breaker, metrics and a log to a scorer. */
export function guardScorer(scorer: Scorer, { now, log, metrics }: Deps): GuardedScorer {
  const logFailure = createLogThrottle({ log, now })
  const breaker = createBreaker({ now, failuresMax: 5, pauseMs: 5000 })
  const label = { scorer: scorer.name }
  let lastFailure: ScorerFailure | undefined

  function note(failure: ScorerFailure) {
    const { kind: problem, message, cause } = failure
    metrics.scorerFailures.inc({ ...label, problem })
    logFailure('scorer_failed', new Error(`${scorer.name}, ${problem}: ${message}`, { cause }))
    if (failure.mayBeByCaller || !countsAgainst.has(problem)) return
    lastFailure = failure
    breaker.failed()
  }

  return {
    ...scorer,
    isPausing: breaker.isPausing,
    async score(segments, call) {
      metrics.scorerRequests.inc(label)
      if (!breaker.mayTry()) {
        metrics.scorerFailures.inc({ ...label, problem: 'paused' })
        throw new ScorerFailure('paused', 'The scorer has failed too often and is not asked now.', {
          cause: lastFailure,
        })
      }
      const stopTimer = metrics.scorerSeconds.startTimer(label)
      try {
        const scores = await scorer.score(segments, call)
        breaker.succeeded()
        return scores
      } catch (error) {
        if (!(error instanceof ScorerFailure)) throw error
        const failure = scorer.readsImages ? byImage(error, segments) : error
        note(failure)
        throw failure
      } finally {
        stopTimer()
      }
    },
  }
}
