import { expect, test } from 'vitest'

import { probePattern } from './pattern-cost.ts'
import { loadPatternEngine, type PatternEngine } from './pattern-engine.ts'
import { makeOwnWordsProbes } from './pattern-probes.ts'
import { re2jsEngine } from './re2js-engine.ts'

/** Of this thread: while another process has the processor, nothing is spent. */
function spend(ms: number): void {
  const before = process.threadCpuUsage()
  for (let spentMs = 0; spentMs < ms;) {
    const { user, system } = process.threadCpuUsage(before)
    spentMs = (user + system) / 1000
  }
}

/** An engine that needs the given milliseconds for a text, which `find` or `hits` spends. */
const slowEngine = (hitsMs: number, findMs: number): PatternEngine => ({
  ...re2jsEngine,
  compileSet: () => ({
    hits: () => (spend(hitsMs), []),
    find: () => (spend(findMs), null),
  }),
})

const costOf = (engine: PatternEngine, pattern: string, slowness?: number) => {
  const cost = probePattern(engine, pattern, slowness === undefined ? undefined : () => slowness)
  if ('problem' in cost) throw new Error(cost.problem)
  return cost
}

test('an ordinary pattern costs less than one that counts letters of many languages', () => {
  const ordinary = costOf(re2jsEngine, '(?i)\\bproject\\s+falcon\\b')
  const hard = costOf(re2jsEngine, '\\p{L}{100}\\p{N}{100}x|(?:a?){60}a{60}')
  expect(hard.searchMs).toBeGreaterThan(ordinary.searchMs)
})

test('the slower of the two questions counts', () => {
  expect(costOf(slowEngine(2, 0), 'a', 1).searchMs).toBeGreaterThanOrEqual(2)
  expect(costOf(slowEngine(0, 2), 'a', 1).searchMs).toBeGreaterThanOrEqual(2)
})

test('the time to compile is measured', () => {
  const slow: PatternEngine = {
    ...re2jsEngine,
    compileSet: (patterns) => (spend(2), re2jsEngine.compileSet(patterns)),
  }
  expect(costOf(slow, 'a', 1).compileMs).toBeGreaterThanOrEqual(2)
})

test('costs are those of the reference machine', () => {
  const { searchMs } = costOf(slowEngine(2, 0), 'a', 10)
  expect(searchMs).toBeGreaterThanOrEqual(0.2)
  expect(searchMs).toBeLessThan(2)
})

test('a pattern that the engine does not accept has no cost', () => {
  expect(probePattern(re2jsEngine, '[[:nothing:]]')).toEqual({
    problem: expect.any(String),
    offset: 0,
  })
})

test.each(['(?i)key.{0,200}secret', '(?i)(?:api)? ?key.{0,200}(?:secret|token)|x\\d'])(
  '%s is slow on a text of its own words and quick on others',
  (pattern) => {
    const { searchMs, ownWordsMs } = costOf(loadPatternEngine(), pattern)
    expect(ownWordsMs).toBeGreaterThan(5)
    expect(searchMs).toBeLessThan(5)
  },
)

test('the words that complete a match are at the end of a text, in which the others are mixed', () => {
  const [opening = [], all = []] = makeOwnWordsProbes('(?i)key.{0,200}(?:secret|to\\bken)')
  for (const text of opening) {
    expect(text).toMatch(/key.+key.+key secret token$/)
    expect(text.match(/secret|token/g)).toEqual(['secret', 'token'])
  }
  for (const text of all) expect(text.match(/secret|token/g)?.length).toBeGreaterThan(100)
  expect(new Set([...opening, ...all])).toHaveLength(6)
  expect(makeOwnWordsProbes('\\d+')).toEqual([])
})

test.each(['[xq].{0,40}#', '[xq][zk].{0,90}#'])(
  '%s is slow on a text of the characters of its classes',
  (pattern) => {
    const { searchMs, ownWordsMs } = costOf(loadPatternEngine(), pattern)
    expect(ownWordsMs).toBeGreaterThan(5)
    expect(ownWordsMs).toBeGreaterThan(searchMs)
  },
)

test('two characters of each class are in the words of a pattern', () => {
  const sample = (source: string) => ({ '[xq]': ['q', 'x'], '[0-9]': ['0', '9'] })[source] ?? []
  const [opening = []] = makeOwnWordsProbes('[xq]a[0-9].{0,9}b', sample)
  for (const text of opening) expect(text).toMatch(/qa0.*xa9.* qa0 b xa9$/)
})
