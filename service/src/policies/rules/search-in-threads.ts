import { ApiError } from '#platform/api-error.ts'
import type { Asker } from '#platform/steps/steps.ts'
import type { ThreadPool } from '#platform/thread-pool.ts'
import type {
  FoundPattern,
  PatternEngine,
  PatternMatch,
  SearchElsewhere,
  SoughtPattern,
} from '#text/pattern-set.ts'

import type { PatternCosts } from './pattern-costs.ts'
import { type Chunk, planSearch, type SearchPlan } from './search-plan.ts'
import { cutTexts, type FoundInPart, type SearchedPart } from './searched-parts.ts'

type Deps = { threads: ThreadPool; costs: PatternCosts }

/** A job that takes longer is given up, and the call is refused: an accepted pattern needs seconds only for megabytes. */
const terms = { waitMs: 5000, runMs: 5000 }
/** All jobs of a search together. */
const searchMaxMs = 20_000

/** What a thread is asked (`thread.ts`), and what it answers. */
export type SearchInput = {
  key: string
  patterns: readonly string[]
  parts: readonly SearchedPart[]
  /** Whether it is wanted where matches are, and not only which patterns have one. */
  wantsPlaces: boolean
}
export type FindInput = SoughtPattern & { text: string; most: number }

/** The engine, with worker threads for searches that would hold the event loop. */
export function withThreads(engine: PatternEngine, deps: Deps): PatternEngine {
  return {
    ...engine,
    elsewhere: {
      search: (patterns) => createSearch(patterns, deps),
      learnCost: deps.costs.learn,
    },
  }
}

/**
 * Searches are done in many short jobs, so that no organization keeps a thread for long: between two jobs the thread goes to
 * the organization that has had it least.
 */
function createSearch(
  patterns: readonly SoughtPattern[],
  { threads, costs }: Deps,
): SearchElsewhere {
  let plan: SearchPlan | null = null
  /** Patterns that were published by an earlier release become cheaper, as soon as they are measured. */
  function currentPlan(): SearchPlan {
    const isStale = plan !== null && plan.unknown.length > 0 && plan.revision !== costs.revision
    plan = plan === null || isStale ? planSearch(patterns, costs) : plan
    return plan
  }

  async function searchAll(texts: readonly string[], search: Omit<Search, 'chunk' | 'untilMs'>) {
    const { chunks, unknown } = currentPlan()
    costs.want(unknown, search.asker.owner)
    const untilMs = performance.now() + searchMaxMs
    const found = new Map<number, FoundPattern>()
    for (const chunk of chunks()) {
      for await (const each of searchChunk(texts, { ...search, chunk, untilMs }, threads)) {
        if (!found.has(each.number)) found.set(each.number, each)
      }
    }
    return [...found.values()].toSorted((one, other) => one.number - other.number)
  }

  return {
    get isNeeded() {
      return currentPlan().isSlow
    },
    async hits(texts, asker) {
      const found = await searchAll(texts, { from: 0, wantsPlaces: false, asker })
      return found.map(({ number }) => number)
    },
    findFirst: (text, from, asker) => searchAll([text], { from, wantsPlaces: true, asker }),
    async findAll(number, text, most, asker) {
      const sought = patterns[number]
      if (!sought) return []
      const input: FindInput = { ...sought, text, most }
      const { owner, signal } = asker
      return (await threads.run('findMatches', input, {
        ...terms,
        owner,
        signal,
      })) as PatternMatch[]
    },
  }
}

type Search = {
  chunk: Chunk
  /** In the first text: matches that start earlier are not looked for. */
  from: number
  wantsPlaces: boolean
  asker: Asker
  untilMs: number
}

/** A quick job is followed by one with more text: most texts are not hard for the patterns. */
const quickMs = 20
const growthMost = 8

async function* searchChunk(
  texts: readonly string[],
  { chunk, from, wantsPlaces, asker, untilMs }: Search,
  threads: ThreadPool,
): AsyncGenerator<FoundPattern> {
  const { key, patterns, numbers, width, lengthAtOnce } = chunk
  const { owner, signal } = asker
  const cut = cutTexts(texts, from, width)
  let growth = 1
  for (;;) {
    const parts = cut(lengthAtOnce * growth)
    if (parts.length === 0) return
    if (performance.now() > untilMs) throw new SearchTooSlow()
    const startedMs = performance.now()
    const input: SearchInput = { key, patterns, parts, wantsPlaces }
    const searching = threads.run('searchPatterns', input, { ...terms, owner, signal })
    const found = await searching.catch((error: unknown) => Promise.reject(asTooSlow(error)))
    const isQuick = performance.now() - startedMs < quickMs
    growth = isQuick ? Math.min(growth * 2, growthMost) : 1
    for (const { number, part, start, end } of found as FoundInPart[]) {
      const offset = parts[part]?.offset ?? 0
      yield { number: numbers[number] ?? 0, start: offset + start, end: offset + end }
    }
  }
}

/** A search that was not done in time. How slow their patterns are, and how much is searched, is up to the organizations. */
export class SearchTooSlow extends ApiError {
  constructor(cause?: unknown) {
    super('overloaded', 'The computation took too long; retry later.', { cause })
  }
}

/** An organization has a thread of its own, so that its own searches are those which are waited for. */
const asTooSlow = (error: unknown): unknown =>
  error instanceof ApiError && error.code === 'overloaded' ? new SearchTooSlow(error) : error
