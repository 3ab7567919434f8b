import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import { runInTurns, type Steps } from '#platform/steps/steps.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

import type { CategoryScores } from './categories.ts'
import { keyOf, KnownScores, type ScoresOf } from './known-scores.ts'
import { NotAsked, type Scorer, type ScoringCall, type Segment } from './scorer.ts'

const sizesOfCache = { entriesMax: 50_000, shareMax: 2500 }

type Deps = { now: Clock; metrics: Metrics; sizes?: { entriesMax: number; shareMax: number } }

/** A scorer whose scores are remembered. */
type RememberedScorer = {
  readonly scorer: Scorer
  /** The same text gets the same scores from scorers of one identity. */
  readonly identity: string
  /** How answers are cut for it; null where the scores of windows are not remembered. */
  readonly grid: WindowGrid | null
}

/** For each segment: its key, and its scores if they are known. */
type LookedUp = {
  readonly keys: readonly (string | undefined)[]
  readonly found: readonly (CategoryScores | undefined)[]
}

/** Asks scorers only for what is not known already: chats send their history with every turn. */
export function createScoreCache({ now, metrics, sizes = sizesOfCache }: Deps) {
  const known = new KnownScores({ now, metrics, sizes })

  /** In steps: a request may have tens of thousands of texts. */
  function* lookUp(
    of: ScoresOf,
    segments: readonly Segment[],
    grid: WindowGrid | null,
  ): Steps<LookedUp> {
    const keys = yield* keysOf(of.identity, segments)
    const found: (CategoryScores | undefined)[] = []
    for (const [index, segment] of segments.entries()) {
      const key = keys[index]
      let scores = known.find(of, key)
      if (!scores && grid) {
        scores = yield* known.findByWindows(of, segment, grid)
        if (scores && key !== undefined) known.keep(of, key, scores)
      }
      found.push(scores)
      yield
    }
    return { keys, found }
  }

  return {
    get size() {
      return known.size
    },
    findAll: (of: ScoresOf, segments: readonly Segment[]) => known.findAll(of, segments),
    /**
     * The scores of all segments. Asks the scorer for those that are not known, and only once for equal ones. Scores that it
     * gave before it failed are cached, too. Scorers with one `identity` give the same text the same scores.
     */
    async score(
      { scorer, identity, grid }: RememberedScorer,
      segments: readonly Segment[],
      call: ScoringCall,
    ): Promise<readonly CategoryScores[]> {
      const { organizationId, signal } = call
      const of = { organizationId, identity }
      const looking = runInTurns(lookUp(of, segments, grid), { owner: organizationId, signal })
      const { keys, found } = looking instanceof Promise ? await looking : looking
      if (found.every((scores) => scores !== undefined)) return found
      if (call.isKnownOnly && scorer.asksOthers) throw new NotAsked('scorer')
      const missing = segments.flatMap((segment, index) =>
        found[index] ? [] : [{ segment, key: keys[index] ?? `${notKept} ${index}` }],
      )
      const questions = new Map(missing.map(({ key, segment }) => [key, segment]))
      const asked = [...questions.keys()]
      const onScored = (index: number, scores: CategoryScores) => {
        const key = asked[index]
        if (key !== undefined && !key.startsWith(notKept)) known.keep(of, key, scores)
      }
      const answers = await scorer.score([...questions.values()], { ...call, onScored })
      const fresh = new Map(asked.map((key, index) => [key, answers[index] ?? {}]))
      return keys.map((key, index) => found[index] ?? fresh.get(key ?? `${notKept} ${index}`) ?? {})
    },
  }
}

export type ScoreCache = ReturnType<typeof createScoreCache>

const notKept = 'not kept'

/** In steps: a request may have many texts, and images of some megabytes. */
function* keysOf(identity: string, segments: readonly Segment[]): Steps<(string | undefined)[]> {
  const keys: (string | undefined)[] = []
  for (const segment of segments) {
    keys.push(yield* keyOf(identity, segment))
    yield
  }
  return keys
}
