import type { PatternEngine, PatternSet } from './pattern-engine.ts'
import { commonProbes, makeOwnWordsProbes, type SampleClass } from './pattern-probes.ts'
import { checkPattern, type PatternComplaint } from './pattern-shape.ts'
import { re2jsEngine } from './re2js-engine.ts'

/** In milliseconds of processor time of the reference machine, so that a slower one accepts the same patterns. */
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
  measureSlowness: () => number = compareWithReference,
): PatternCost | PatternComplaint {
  if (!warmEngines.has(engine)) warmUp(engine)
  const shape = checkPattern(engine, pattern)
  if ('problem' in shape) return shape
  const slowness = measureSlowness()
  const cost = measure(engine, pattern)
  return {
    compileMs: cost.compileMs / slowness,
    searchMs: cost.searchMs / slowness,
    ownWordsMs: cost.ownWordsMs / slowness,
  }
}

function warmUp(engine: PatternEngine): void {
  for (const pattern of ordinaryPatterns) measure(engine, pattern)
  compareWithReference()
  warmEngines.add(engine)
}

const referencePattern = 'a.{0,20}b'
/** So short that other processes seldom interrupt a search of it. */
const referenceText = (makeOwnWordsProbes(referencePattern)[0]?.[0] ?? '').slice(-256)
/** What the reference machine needs for it. */
const referenceMs = 0.5

/** How many times slower this machine is now than the reference machine, by one search of the engine in JavaScript. */
function compareWithReference(): number {
  // An automaton remembers the states that a text needed, so each try has a new one.
  const search = (text: string) => re2jsEngine.compileSet([referencePattern]).hits(text)
  const tries = Array.from({ length: 8 }, () => referenceText)
  return fastestTry(tries, search) / referenceMs
}

function measure(engine: PatternEngine, pattern: string): PatternCost {
  const compile = () => engine.compileSet([pattern])
  // An engine may compile the pattern only when it is first looked for.
  const compileMs = fastestTry([pattern, pattern, pattern], () => void compile().find(0, '', 0))
  return {
    compileMs,
    searchMs: slowestProbe(compile, commonProbes),
    ownWordsMs: slowestProbe(compile, makeOwnWordsProbes(pattern, createSampler(engine))),
  }
}

const ascii = Array.from({ length: 95 }, (_, index) => String.fromCharCode(32 + index))
const candidates = [...ascii, 'é', 'я', '中', 'א', '😀']
/** A class that has more of the candidates is met in any text. */
const samplesMost = 70

/** The engine itself says which characters belong to a class. */
function createSampler(engine: PatternEngine): SampleClass {
  const known = new Map<string, readonly string[]>()
  return (source) => {
    const samples = known.get(source) ?? sampleClass(engine, source)
    known.set(source, samples)
    return samples
  }
}

/** The first and the last of the candidates that are in a class. */
function sampleClass(engine: PatternEngine, source: string): readonly string[] {
  if (source === '.') return []
  const set = engine.compileSet([source])
  const samples = candidates.filter((character) => set.hits(character).length > 0)
  const [first] = samples
  const last = samples.at(-1)
  return first === undefined || last === undefined || samples.length > samplesMost
    ? []
    : [first, last]
}

const confirmationsMost = 8

/**
 * The highest of many short measurements is often one that other work has interrupted. So it is measured again, until the
 * highest one is confirmed.
 */
function slowestProbe(compile: () => PatternSet, probes: readonly (readonly string[])[]): number {
  const set = compile()
  const measured = questions.flatMap((ask) =>
    probes.map((texts) => ({ texts, ask, ms: fastestTry(texts, (text) => ask(set, text)) })),
  )
  const slowest = () => measured.reduce((a, b) => (a.ms >= b.ms ? a : b))
  if (measured.length === 0) return 0
  for (let made = 0; made < confirmationsMost; made++) {
    const highest = slowest()
    if (highest.ms > hopelessMs) break
    // An automaton remembers the states that a text needed, so it has to be a new one.
    const other = compile()
    const ms = fastestTry(highest.texts, (text) => highest.ask(other, text))
    const isConfirmed = ms > highest.ms * 0.8
    highest.ms = Math.min(highest.ms, ms)
    if (isConfirmed) break
  }
  return slowest().ms
}

/** Both questions that a set answers: one engine is quick with the first and slow with the second. */
const questions: readonly ((set: PatternSet, text: string) => unknown)[] = [
  (set, text) => set.hits(text),
  (set, text) => set.find(0, text, 0),
]

/** Ten times what any pattern may take: no other try would make a difference. */
const hopelessMs = 600

/** The first try is not counted, and other work may interrupt one of the others. */
function fastestTry(
  [first = '', ...texts]: readonly string[],
  ask: (text: string) => void,
): number {
  const firstMs = spentMs(() => ask(first))
  if (firstMs > hopelessMs) return firstMs
  return Math.min(...texts.map((text) => spentMs(() => ask(text))))
}

/** Some systems count the time of a thread in steps of 4 ms, so it says nothing of what takes less than a few of them. */
const countedMs = 10

/** The time of this thread on a processor, where that can be told: a busy machine makes no pattern slower. */
function spentMs(work: () => void): number {
  const before = process.threadCpuUsage()
  const startedMs = performance.now()
  work()
  const passedMs = performance.now() - startedMs
  const { user, system } = process.threadCpuUsage(before)
  return Math.min(passedMs, Math.max((user + system) / 1000, countedMs))
}
