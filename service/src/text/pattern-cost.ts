import type { PatternEngine, PatternSet } from './pattern-engine.ts'
import { commonProbes, makeOwnWordsProbes } from './pattern-probes.ts'
import { checkPattern, type PatternComplaint } from './pattern-shape.ts'

/** In milliseconds of processor time. */
export type PatternCost = {
  compileMs: number
  /** For the hardest of some texts of 8 KiB that are the same for all patterns. */
  searchMs: number
  /** For the harder of two texts of 8 KiB that consist of the words of the pattern. */
  ownWordsMs: number
}

/** Patterns of an ordinary kind. With them the engine is used for a while before anything is measured. */
const ordinaryPatterns = ['(?i)\\bsecret\\s+key\\b', '\\b(?:\\d[ -]?){13,16}\\b', 'a.{0,20}b']
const warmEngines = new WeakSet<PatternEngine>()

/** What a pattern costs, or why the engine does not accept it. The shortest of several tries counts. */
export function probePattern(
  engine: PatternEngine,
  pattern: string,
): PatternCost | PatternComplaint {
  if (!warmEngines.has(engine)) warmUp(engine)
  const shape = checkPattern(engine, pattern)
  return 'problem' in shape ? shape : measure(engine, pattern)
}

function warmUp(engine: PatternEngine): void {
  for (const pattern of ordinaryPatterns) measure(engine, pattern)
  warmEngines.add(engine)
}

function measure(engine: PatternEngine, pattern: string): PatternCost {
  // An engine may compile the pattern only when it is first looked for.
  const compileMs = fastestTry([pattern, pattern, pattern], (it) => {
    engine.compileSet([it]).find(0, '', 0)
  })
  const set = engine.compileSet([pattern])
  return {
    compileMs,
    searchMs: slowestProbe(set, commonProbes),
    ownWordsMs: slowestProbe(set, makeOwnWordsProbes(pattern)),
  }
}

/** Both questions that a set answers: one engine is quick with the first and slow with the second. */
function slowestProbe(set: PatternSet, probes: readonly (readonly string[])[]): number {
  return Math.max(
    0,
    ...probes.map((texts) => fastestTry(texts, (text) => set.hits(text))),
    ...probes.map((texts) => fastestTry(texts, (text) => set.find(0, text, 0))),
  )
}

/** The first try is not counted, and other work may interrupt one of the others. */
function fastestTry(
  [first = '', ...texts]: readonly string[],
  ask: (text: string) => void,
): number {
  ask(first)
  let fastestMs = Infinity
  for (const text of texts) {
    const startedMs = threadMs()
    ask(text)
    fastestMs = Math.min(fastestMs, threadMs() - startedMs)
  }
  return fastestMs
}

/** The time of this thread on a processor: a busy machine makes no pattern slower. */
function threadMs(): number {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}
