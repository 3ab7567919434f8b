import { createRequire } from 'node:module'

import type RE2 from 're2'

import type { Steps } from '#platform/steps/steps.ts'

import { afterPair, asWellFormed, compileShards, createEngine, timed } from './pattern-set.ts'
import type { CompiledPattern, PatternEngine, PatternMatch, PatternSet } from './pattern-set.ts'

type Compiled = CompiledPattern & { readonly finder: RE2 }

const patternsPerShard = 500
/** For the states that an automaton has met so far; it starts again when they are too many. */
const shardMemoryBytes = 16 * 1024 * 1024

/** The native engine, or null where it was not built. */
export function loadRe2(): PatternEngine | null {
  try {
    const re2 = createRequire(import.meta.url)('re2') as typeof RE2
    return createEngine({
      name: 're2',
      compile: (pattern) => compile(re2, pattern),
      joinInSteps: (patterns) => joinInSteps(re2, patterns),
    })
  } catch {
    return null
  }
}

function compile(re2: typeof RE2, pattern: string): Compiled {
  const finder = new re2(pattern, 'gu')
  const { ms: automatonMs } = timed(() => compileShard(re2, [pattern]))
  return { pattern, finder, automatonMs }
}

const compileShard = (re2: typeof RE2, patterns: readonly string[]) =>
  new re2.Set(patterns, 'u', { maxMem: shardMemoryBytes })

function* joinInSteps(re2: typeof RE2, patterns: readonly Compiled[]): Steps<PatternSet> {
  const shards = yield* compileShards(patterns, patternsPerShard, (some) => compileShard(re2, some))

  const find = (pattern: number, text: string, from: number): PatternMatch | null => {
    const start = afterPair(text, from)
    const finder = patterns[pattern]?.finder
    if (!finder || start > text.length) return null
    finder.lastIndex = start
    const match = finder.exec(asWellFormed(text))
    return match && { start: match.index, end: match.index + match[0].length }
  }
  /** The engine reads bytes and sees a place without word boundary inside of a long character. */
  const isReal = (pattern: number, text: string) =>
    !patterns[pattern]?.pattern.includes('\\B') || find(pattern, text, 0) !== null

  const hitsOf = (first: number, automaton: InstanceType<typeof re2.Set>, text: string) => {
    try {
      return automaton.match(text).map((index) => first + index)
    } catch {
      // Its memory did not suffice for this text. Each pattern alone needs no more than it has.
      const all = Array.from({ length: automaton.size }, (_, index) => first + index)
      return all.filter((pattern) => find(pattern, text, 0) !== null)
    }
  }
  return {
    find,
    hits(text) {
      const wellFormed = asWellFormed(text)
      return shards
        .flatMap(({ first, automaton }) => hitsOf(first, automaton, wellFormed))
        .filter((pattern) => isReal(pattern, wellFormed))
    },
  }
}
