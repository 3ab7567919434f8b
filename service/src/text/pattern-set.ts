import { type Asker, finish, type Steps } from '#platform/steps/steps.ts'

export type PatternMatch = { start: number; end: number }

/** Patterns in RE2 syntax that are looked for together. Offsets are in UTF-16 units. */
export type PatternSet = {
  /** Which patterns occur somewhere in the text, in order. */
  hits(text: string): readonly number[]
  /** The leftmost match that starts at or after `from`; what stands before `from` is seen by anchors and word boundaries. */
  find(pattern: number, text: string, from: number): PatternMatch | null
}

/** A pattern that an engine accepts; it may be part of any number of sets of that engine. */
export type CompiledPattern = {
  readonly pattern: string
  /** How long it takes to make an automaton for this pattern alone; 0 if it never becomes part of one. */
  readonly automatonMs: number
}

export type PatternEngine = {
  readonly name: 're2' | 're2js'
  /** Throws if the engine does not accept the pattern. */
  compile(pattern: string): CompiledPattern
  /** A set of patterns that this engine has compiled. */
  joinInSteps(patterns: readonly CompiledPattern[]): Steps<PatternSet>
  /** Compiles patterns and joins them, all at once. */
  compileSet(patterns: readonly string[]): PatternSet
  /** A place outside the event loop, for patterns that take long. Absent where there is none. */
  readonly elsewhere?: Elsewhere
}

/** A pattern, and the most UTF-16 units that a match of it can span. */
export type SoughtPattern = { readonly pattern: string; readonly width: number }

type Elsewhere = {
  /** Prepares the search for patterns that are looked for together. */
  search(patterns: readonly SoughtPattern[]): SearchElsewhere
  /** What a pattern costs, in milliseconds for 8 KB, as it was measured before. */
  learnCost(pattern: string, costMs: number): void
}

/** Finds the same as a set of these patterns. Rejects where no thread can search. */
export type SearchElsewhere = {
  /** Whether they cost so much together, or may, that no text is searched for them in the event loop. Costs become known later. */
  readonly isNeeded: boolean
  /** Which patterns occur in at least one of the texts. */
  hits(texts: readonly string[], asker: Asker): Promise<readonly number[]>
  /** The leftmost match of each pattern that starts at or after `from`; patterns without one are left out. */
  findFirst(text: string, from: number, asker: Asker): Promise<readonly FoundPattern[]>
  /** The first matches of one pattern, as many as `most`. */
  findAll(pattern: number, text: string, most: number, asker: Asker): Promise<PatternMatch[]>
}

export type FoundPattern = PatternMatch & { readonly number: number }

/** What is particular to an engine. */
type EngineParts<Compiled extends CompiledPattern> = {
  name: PatternEngine['name']
  compile(pattern: string): Compiled
  joinInSteps(patterns: readonly Compiled[]): Steps<PatternSet>
}

export function createEngine<Compiled extends CompiledPattern>({
  name,
  compile,
  joinInSteps,
}: EngineParts<Compiled>): PatternEngine {
  return {
    name,
    compile,
    // An engine only gets patterns that it has compiled itself.
    joinInSteps: (patterns) => joinInSteps(patterns as readonly Compiled[]),
    compileSet: (patterns) => finish(joinInSteps(patterns.map(compile))),
  }
}

/** A part of a set: some of the patterns in one automaton. `first` is the number of its first pattern. */
export type Shard<Automaton> = { first: number; automaton: Automaton }

/** An automaton is made in one step, so its patterns together must not take longer, unless a single one does. */
const automatonMaxMs = 5

/** Divides patterns into automata of at most `most` patterns, and of fewer where they do not fit into one. */
export function* compileShards<Automaton>(
  patterns: readonly CompiledPattern[],
  most: number,
  compile: (patterns: readonly string[]) => Automaton,
): Steps<Shard<Automaton>[]> {
  const shards: Shard<Automaton>[] = []
  function* add(first: number, until: number): Steps<void> {
    const some = patterns.slice(first, until).map(({ pattern }) => pattern)
    yield
    try {
      shards.push({ first, automaton: compile(some) })
    } catch (error) {
      if (until - first === 1) throw error
      const middle = (first + until) >> 1
      yield* add(first, middle)
      yield* add(middle, until)
    }
  }
  for (let first = 0; first < patterns.length;) {
    const until = endOfShard(patterns, first, most)
    yield* add(first, until)
    first = until
  }
  return shards
}

function endOfShard(patterns: readonly CompiledPattern[], first: number, most: number): number {
  let sumMs = 0
  let until = first
  while (until < patterns.length && until - first < most) {
    sumMs += patterns[until]?.automatonMs ?? 0
    if (sumMs > automatonMaxMs && until > first) break
    until++
  }
  return until
}

/** Runs something and says how many milliseconds it took. */
export function timed<Result>(work: () => Result): { result: Result; ms: number } {
  const startedMs = performance.now()
  const result = work()
  return { result, ms: performance.now() - startedMs }
}

/** Both engines see the same text: half of a surrogate pair is the replacement character, which is as wide. */
export const asWellFormed = (text: string) => (text.isWellFormed() ? text : text.toWellFormed())

/** A match cannot start inside of a surrogate pair. */
export function afterPair(text: string, from: number): number {
  if (from <= 0) return 0
  const isInside =
    (text.charCodeAt(from) & 0xfc00) === 0xdc00 && (text.charCodeAt(from - 1) & 0xfc00) === 0xd800
  return isInside ? from + 1 : from
}
