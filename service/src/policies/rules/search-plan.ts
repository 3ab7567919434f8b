import { createHash } from 'node:crypto'

import type { SoughtPattern } from '#text/pattern-set.ts'

import type { PatternCosts } from './pattern-costs.ts'
import { slicedWidthMax, sliceLength } from './searched-parts.ts'

/** Patterns that cost more together, for 8 KB, are not looked for in the event loop, however short the text is. */
const quickMaxMs = 10
/** What one job may take, if its text is as hard as texts can be; a single pattern may take longer. */
const jobMs = 100
/** The assumed cost of a pattern that has not been measured. */
const unknownMs = 10
const patternsPerJob = 500

/** Patterns that are looked for in the same job. `numbers` are their places in the whole set. */
export type Chunk = {
  /** By which a thread remembers the set that it has compiled. */
  key: string
  patterns: readonly string[]
  numbers: readonly number[]
  /** The most that one of their matches can span; Infinity: a text is not searched in slices. */
  width: number
  /** How much text a job may search. */
  lengthAtOnce: number
}

export type SearchPlan = {
  isSlow: boolean
  chunks(): readonly Chunk[]
  /** Patterns whose cost is not known. */
  unknown: readonly string[]
  /** Of the costs that the plan was made with. */
  revision: number
}

/** How patterns are looked for outside of the event loop, and whether they have to be. */
export function planSearch(patterns: readonly SoughtPattern[], costs: PatternCosts): SearchPlan {
  const { revision } = costs
  const all = patterns.map(({ pattern, width }, number) => {
    const costMs = costs.of(pattern)
    return { pattern, width, number, costMs: costMs ?? unknownMs, isUnknown: costMs === undefined }
  })
  const unknown = all.filter(({ isUnknown }) => isUnknown).map(({ pattern }) => pattern)
  const sumMs = all.reduce((sum, { costMs }) => sum + costMs, 0)
  let chunks: readonly Chunk[] | null = null
  return {
    isSlow: sumMs > quickMaxMs || unknown.length > 0,
    chunks: () => (chunks ??= chunksOf(all)),
    unknown,
    revision,
  }
}

function chunksOf(all: readonly Costly[]): Chunk[] {
  const sliced = all.filter(({ width }) => width <= slicedWidthMax)
  const others = all.filter(({ width }) => width > slicedWidthMax)
  return [...divide(sliced), ...divide(others)].map(toChunk)
}

type Costly = SoughtPattern & { number: number; costMs: number }

function divide(all: readonly Costly[]): Costly[][] {
  const chunks: Costly[][] = []
  let sumMs = Infinity
  for (const each of all) {
    const last = chunks.at(-1)
    sumMs += each.costMs
    if (last && sumMs <= jobMs && last.length < patternsPerJob) {
      last.push(each)
    } else {
      chunks.push([each])
      sumMs = each.costMs
    }
  }
  return chunks
}

function toChunk(some: readonly Costly[]): Chunk {
  const patterns = some.map(({ pattern }) => pattern)
  const sumMs = some.reduce((sum, { costMs }) => sum + costMs, 0)
  const widest = some.reduce((most, { width }) => Math.max(most, width), 0)
  const slices = Math.max(1, Math.floor(jobMs / Math.max(sumMs, 1)))
  return {
    key: createHash('sha256').update(JSON.stringify(patterns)).digest('base64'),
    patterns,
    numbers: some.map(({ number }) => number),
    width: widest > slicedWidthMax ? Infinity : widest,
    lengthAtOnce: slices * sliceLength,
  }
}
