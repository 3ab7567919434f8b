import { createHash, hash } from 'node:crypto'

import { SharedMap } from '#platform/caches/shared-map.ts'
import type { Clock } from '#platform/clock.ts'
import type { Metrics } from '#platform/metrics.ts'
import type { Steps } from '#platform/steps/steps.ts'
import type { WindowGrid } from '#text/windows/window-grid.ts'

import type { CategoryScores } from './categories.ts'
import type { Segment } from './scorer.ts'

/** Characters of a text that is digested in one go, which is far quicker for short ones. */
const shortMax = 16 * 1024
/** Characters; about a millisecond of work. */
const digestedAtOnce = 512 * 1024
const lifetimeMs = 24 * 60 * 60 * 1000

export type KnownScoresDeps = {
  now: Clock
  metrics: Metrics
  sizes: { entriesMax: number; shareMax: number }
}

/** Whose scores are remembered, and for whom. */
export type ScoresOf = {
  readonly organizationId: string
  /** The same text gets the same scores from scorers of one identity. */
  readonly identity: string
}

/**
 * Scores by the digests of texts, so that no text is kept. Models change behind their names, so an entry lasts a day.
 * Organizations do not see each other's entries: how long an answer takes must not tell whether another one has sent the same text.
 */
export class KnownScores {
  readonly #deps: KnownScoresDeps
  readonly #entries: SharedMap<{ scores: CategoryScores; untilMs: number }>
  readonly #lookups: Record<'known' | 'unknown', { inc(count?: number): void }>

  constructor(deps: KnownScoresDeps) {
    this.#deps = deps
    const { scoreLookups } = deps.metrics
    this.#lookups = {
      known: scoreLookups.labels({ result: 'known' }),
      unknown: scoreLookups.labels({ result: 'unknown' }),
    }
    this.#entries = new SharedMap(deps.sizes)
  }

  get size(): number {
    return this.#entries.size
  }

  find({ organizationId }: ScoresOf, key: string | undefined): CategoryScores | undefined {
    const scores = key === undefined ? undefined : this.#read(organizationId, key)
    this.#lookups[scores ? 'known' : 'unknown'].inc()
    return scores
  }

  keep({ organizationId }: ScoresOf, key: string, scores: CategoryScores) {
    const untilMs = this.#deps.now().getTime() + lifetimeMs
    this.#entries.set(organizationId, key, { scores, untilMs })
  }

  /** The scores of all segments where all of them are known, at once. For short texts. */
  findAll(of: ScoresOf, segments: readonly Segment[]): readonly CategoryScores[] | undefined {
    const found: CategoryScores[] = []
    for (const segment of segments) {
      if (segment.imageUrl !== undefined || segment.text.length > shortMax) return undefined
      const scores = this.#read(of.organizationId, shortKeyOf(of.identity, segment))
      if (!scores) return undefined
      found.push(scores)
    }
    this.#lookups.known.inc(found.length)
    return found
  }

  /** The highest scores of all windows of an earlier answer, if all of them are known. */
  *findByWindows(of: ScoresOf, segment: Segment, grid: WindowGrid) {
    let highest: CategoryScores | undefined
    for (const windows of segment.windows?.(grid) ?? []) {
      for (const { text } of windows) {
        const scores = this.find(of, shortKeyOf(of.identity, { role: segment.role, text }))
        if (!scores) return undefined
        highest = higherOf(highest, scores)
      }
      yield
    }
    // A text of which nothing is left in its normal form has no windows.
    return highest
  }

  #read(organizationId: string, key: string): CategoryScores | undefined {
    const entry = this.#entries.get(organizationId, key)
    return entry && entry.untilMs > this.#deps.now().getTime() ? entry.scores : undefined
  }
}

function higherOf(before: CategoryScores | undefined, after: CategoryScores): CategoryScores {
  const highest: Record<string, number> = { ...before }
  for (const [category, score] of Object.entries(after)) {
    highest[category] = Math.max(score, highest[category] ?? 0)
  }
  return highest
}

const headOf = (identity: string, { role, text, imageUrl }: Segment) =>
  `${identity}\n${role} ${text.length} ${imageUrl === undefined ? 'text' : 'image'}\n`

function shortKeyOf(identity: string, segment: Segment): string {
  const all = headOf(identity, segment) + segment.text + (segment.imageUrl ?? '')
  // UTF-8 would make one text of all that differ only in half characters. Nothing is written alike in both: every identity begins
  // with two characters of ASCII.
  return hash('sha256', all.isWellFormed() ? all : Buffer.from(all, 'utf16le'), 'base64url')
}

/** Undefined: not kept, because what an address leads to may change. */
export function* keyOf(identity: string, segment: Segment): Steps<string | undefined> {
  const { text, imageUrl } = segment
  if (imageUrl !== undefined && !imageUrl.startsWith('data:')) return undefined
  const image = imageUrl ?? ''
  if (text.length + image.length <= shortMax) return shortKeyOf(identity, segment)
  const head = headOf(identity, segment)
  const digest = createHash('sha256').update(head, 'utf16le')
  for (const part of [text, image]) {
    for (let at = 0; at < part.length; at += digestedAtOnce) {
      digest.update(part.slice(at, at + digestedAtOnce), 'utf16le')
      yield
    }
  }
  return digest.digest('base64url')
}
