import { createHash, hash } from 'node:crypto'

import { BoundedMap } from '#platform/bounded-map.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import { finish, runInTurns, type Steps } from '#text/steps.ts'

import type { CategoryScores } from './categories.ts'
import type { Scorer, ScoringCall, Segment } from './scorer.ts'

const entriesMax = 50_000
/** Characters of a text that is digested in one go, which is far quicker for short ones. */
const shortMax = 16 * 1024
/** Characters; about a millisecond of work. */
const digestedAtOnce = 512 * 1024
const lifetimeMs = 24 * 60 * 60 * 1000

type Deps = { now: Clock; metrics: Metrics }

/**
 * Scores that are known already: chats send their history with every turn. Keys are digests and values are scores, so that no
 * text is kept. Models change behind their names, so an entry lasts a day.
 */
export function createScoreCache({ now, metrics }: Deps) {
  const known = new BoundedMap<string, { scores: CategoryScores; untilMs: number }>(entriesMax)

  function find(key: string | undefined): CategoryScores | undefined {
    const entry = key === undefined ? undefined : known.get(key)
    const isFound = entry !== undefined && entry.untilMs > now().getTime()
    metrics.scoreLookups.inc({ result: isFound ? 'known' : 'unknown' })
    return isFound ? entry.scores : undefined
  }

  /** The highest scores of all windows, if all of them are known. */
  function findByWindows(identity: string, segment: Segment, key: string | undefined) {
    const windows = segment.windows?.() ?? []
    const scores = windows.map((text) =>
      find(finish(keyOf(identity, { role: segment.role, text }))),
    )
    // A text of which nothing is left in its normal form has no windows.
    const highest = windows.length === 0 ? undefined : highestOf(scores)
    if (highest && key !== undefined) {
      known.set(key, { scores: highest, untilMs: now().getTime() + lifetimeMs })
    }
    return highest
  }

  return {
    get size() {
      return known.size
    },
    /**
     * The scores of all segments; asks the scorer for those that are not known, and for equal ones once. What it has scored
     * before it failed is known, too. The same text gets the same scores from scorers of one `identity`.
     */
    async score(
      scorer: Scorer,
      identity: string,
      segments: readonly Segment[],
      call: ScoringCall,
    ): Promise<readonly CategoryScores[]> {
      const digesting = runInTurns(keysOf(identity, segments), {
        owner: call.organizationId,
        signal: call.signal,
      })
      const keys = Array.isArray(digesting) ? digesting : await digesting
      const found: (CategoryScores | undefined)[] = keys.map(find)
      for (const [index, segment] of segments.entries()) {
        if (!found[index] && segment.windows) {
          found[index] = findByWindows(identity, segment, keys[index])
        }
      }
      if (found.every((scores) => scores !== undefined)) return found
      const missing = segments.flatMap((segment, index) =>
        found[index] ? [] : [{ segment, key: keys[index] ?? `${notKept} ${index}` }],
      )
      const questions = new Map(missing.map(({ key, segment }) => [key, segment]))
      const asked = [...questions.keys()]
      const onScored = (index: number, scores: CategoryScores) => {
        const key = asked[index]
        if (key !== undefined && !key.startsWith(notKept)) {
          known.set(key, { scores, untilMs: now().getTime() + lifetimeMs })
        }
      }
      const answers = await scorer.score([...questions.values()], { ...call, onScored })
      const fresh = new Map(asked.map((key, index) => [key, answers[index] ?? {}]))
      return keys.map((key, index) => found[index] ?? fresh.get(key ?? `${notKept} ${index}`) ?? {})
    },
  }
}
/** Undefined where some are unknown. */
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

/** Undefined: not kept, because what an address leads to may change. */
function* keyOf(identity: string, { role, text, imageUrl }: Segment): Steps<string | undefined> {
  if (imageUrl !== undefined && !imageUrl.startsWith('data:')) return undefined
  const kind = imageUrl === undefined ? 'text' : 'image'
  const head = `${identity}\n${role} ${text.length} ${kind}\n`
  const image = imageUrl ?? ''
  // UTF-8 would make one text of all that differ only in half characters.
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
