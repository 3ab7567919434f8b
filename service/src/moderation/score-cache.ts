import { createHash, hash } from 'node:crypto'

import { SharedMap } from '#platform/caches/shared-map.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import { finish, runInTurns, type Steps } from '#text/steps.ts'

import type { CategoryScores } from './categories.ts'
import { NotAsked, type Scorer, type ScoringCall, type Segment } from './scorer.ts'

const sizesOfCache = { entriesMax: 50_000, shareMax: 2500 }
/** Texts up to this many characters are digested in one go, which is far quicker for short ones. */
const shortMax = 16 * 1024
/** Characters; about a millisecond of work. */
const digestedAtOnce = 512 * 1024
const lifetimeMs = 24 * 60 * 60 * 1000

type Deps = { now: Clock; metrics: Metrics; sizes?: { entriesMax: number; shareMax: number } }

type Wanted = { organizationId: string; identity: string; segments: readonly Segment[] }

/** For each segment: its key, and its scores if they are known. */
type LookedUp = {
  readonly keys: readonly (string | undefined)[]
  readonly found: readonly (CategoryScores | undefined)[]
}

/**
 * Caches scores, because chats send their history with every turn. Keys are digests and values are scores, so no text is kept.
 * Models change behind their names, so an entry lasts a day. Organizations do not see each other's entries: how long an answer
 * takes must not reveal whether another organization has sent the same text.
 */
export function createScoreCache({ now, metrics, sizes = sizesOfCache }: Deps) {
  const known = new SharedMap<{ scores: CategoryScores; untilMs: number }>(sizes)

  function find(organizationId: string, key: string | undefined): CategoryScores | undefined {
    const entry = key === undefined ? undefined : known.get(organizationId, key)
    const isFound = entry !== undefined && entry.untilMs > now().getTime()
    metrics.scoreLookups.inc({ result: isFound ? 'known' : 'unknown' })
    return isFound ? entry.scores : undefined
  }

  const keep = (organizationId: string, key: string, scores: CategoryScores) =>
    known.set(organizationId, key, { scores, untilMs: now().getTime() + lifetimeMs })

  /** The highest scores of all windows, if all of them are known. */
  function findByWindows({ organizationId, identity, segment, key }: ByWindows) {
    const windows = segment.windows?.() ?? []
    const scores = windows.map((text) =>
      find(organizationId, finish(keyOf(identity, { role: segment.role, text }))),
    )
    // A text that is empty in its normal form has no windows.
    const highest = windows.length === 0 ? undefined : highestOf(scores)
    if (highest && key !== undefined) keep(organizationId, key, highest)
    return highest
  }

  /** In steps: a request may have tens of thousands of texts. */
  function* lookUp({ organizationId, identity, segments }: Wanted): Steps<LookedUp> {
    const keys = yield* keysOf(identity, segments)
    const found: (CategoryScores | undefined)[] = []
    for (const [index, segment] of segments.entries()) {
      const wanted = { organizationId, identity, segment, key: keys[index] }
      found.push(find(organizationId, wanted.key) ?? findByWindows(wanted))
      yield
    }
    return { keys, found }
  }

  return {
    get size() {
      return known.size
    },
    /**
     * The scores of all segments. Asks the scorer for those that are not known, and only once for equal ones. Scores that it
     * gave before it failed are cached, too. Scorers with one `identity` give the same text the same scores.
     */
    async score(
      scorer: Scorer,
      identity: string,
      segments: readonly Segment[],
      call: ScoringCall,
    ): Promise<readonly CategoryScores[]> {
      const { organizationId, signal } = call
      const steps = lookUp({ organizationId, identity, segments })
      const looking = runInTurns(steps, { owner: organizationId, signal })
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
        if (key !== undefined && !key.startsWith(notKept)) keep(organizationId, key, scores)
      }
      const answers = await scorer.score([...questions.values()], { ...call, onScored })
      const fresh = new Map(asked.map((key, index) => [key, answers[index] ?? {}]))
      return keys.map((key, index) => found[index] ?? fresh.get(key ?? `${notKept} ${index}`) ?? {})
    },
  }
}

type ByWindows = {
  organizationId: string
  identity: string
  segment: Segment
  key: string | undefined
}

/** Undefined if some scores are unknown. */
function highestOf(all: readonly (CategoryScores | undefined)[]): CategoryScores | undefined {
  const highest: Record<string, number> = {}
  for (const scores of all) {
    if (!scores) return undefined
    for (const [category, score] of Object.entries(scores)) {
      highest[category] = Math.max(score, highest[category] ?? 0)
    }
  }
  return highest
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

/** Undefined if the scores are not cached, because what an address leads to may change. */
function* keyOf(identity: string, { role, text, imageUrl }: Segment): Steps<string | undefined> {
  if (imageUrl !== undefined && !imageUrl.startsWith('data:')) return undefined
  const kind = imageUrl === undefined ? 'text' : 'image'
  const head = `${identity}\n${role} ${text.length} ${kind}\n`
  const image = imageUrl ?? ''
  // In UTF-8, texts that differ only in half surrogate pairs would have the same bytes.
  if (text.length + image.length <= shortMax) {
    return hash('sha256', Buffer.from(head + text + image, 'utf16le'), 'base64url')
  }
  const digest = createHash('sha256').update(head, 'utf16le')
  for (const part of [text, image]) {
    for (let at = 0; at < part.length; at += digestedAtOnce) {
      digest.update(part.slice(at, at + digestedAtOnce), 'utf16le')
      yield
    }
  }
  return digest.digest('base64url')
}
