import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { ThreadPool } from '#platform/thread-pool.ts'
import { patternCostsOf } from '#policies/guard/testing/pattern-costs-of.ts'
import { createV8Patterns } from '#policies/guard/testing/v8-patterns.ts'

import { createPatternCosts } from './pattern-costs.ts'
import { planSearch } from './search-plan.ts'
import { cutTexts, searchParts } from './searched-parts.ts'

const patternsOf = (count: number, width = 10) =>
  Array.from({ length: count }, (_, index) => ({ pattern: `p${index}`, width }))

test.each([
  [10, 1, false],
  [11, 1, true],
  [1, 10, false],
  [1, 11, true],
  [0, 1, false],
])('%i patterns of %i ms each: slow is %s', (count, costMs, isSlow) => {
  expect(
    planSearch(
      patternsOf(count),
      patternCostsOf(() => costMs),
    ).isSlow,
  ).toBe(isSlow)
})

test('patterns that were not measured count as slow, and are reported as unknown', () => {
  const costs = patternCostsOf((pattern) => (pattern === 'p1' ? undefined : 0.1))
  expect(planSearch(patternsOf(3), costs)).toMatchObject({ isSlow: true, unknown: ['p1'] })
})

test('a job has patterns for at most 100 ms, and bounded ones apart from the others', () => {
  const patterns = [...patternsOf(5), { pattern: 'wide', width: Infinity }, ...patternsOf(1)]
  const chunks = planSearch(
    patterns,
    patternCostsOf(() => 40),
  ).chunks()
  expect(chunks.map(({ numbers, width }) => [numbers, width])).toEqual([
    [[0, 1], 10],
    [[2, 3], 10],
    [[4, 6], 10],
    [[5], Infinity],
  ])
  expect(new Set(chunks.map(({ key }) => key))).toHaveLength(4)
})

test('texts that are cut anywhere are found to have what they have whole', () => {
  const patterns = ['a.{0,3}b', '^a', String.raw`\bb`, 'b$', 'aa', 'x?$']
  const set = createV8Patterns(patterns)
  const text = fc.string({ unit: fc.constantFrom('a', 'b', ' ', 'é', '😀'), maxLength: 30 })
  fc.assert(
    fc.property(
      fc.array(text, { maxLength: 4 }),
      fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1 }),
      (texts, lengths) => {
        const cut = cutTexts(texts, 0, 10)
        const found = new Set<number>()
        for (let round = 0; ; round++) {
          const parts = cut(lengths[round % lengths.length] ?? 1)
          if (parts.length === 0) break
          for (const { number } of searchParts(set, parts, false)) found.add(number)
        }
        const expected = new Set(texts.flatMap((each) => set.hits(each)))
        expect(found).toEqual(expected)
      },
    ),
  )
})

/** Threads that know what patterns cost; what they are asked is noted. */
function createCosts(costOf: (pattern: string) => number) {
  const measured: string[] = []
  const threads: Pick<ThreadPool, 'run'> = {
    async run(_, input) {
      const { pattern } = input as { pattern: string }
      measured.push(pattern)
      return { compileMs: 1, searchMs: costOf(pattern), ownWordsMs: 0 }
    },
  }
  return { measured, costs: createPatternCosts(threads as ThreadPool) }
}

test('wanted patterns are measured once, one after the other, and what is known stays', async () => {
  const { measured, costs } = createCosts(() => 3)
  costs.learn('known', 7)
  costs.want(['one', 'known', 'two'], 'org_1')
  costs.want(['two', 'one'], 'org_2')
  await expect.poll(() => costs.of('two')).toBe(3)
  costs.want(['one', 'two'], 'org_1')
  costs.learn('one', 100)
  expect([costs.of('one'), costs.of('known'), costs.of('other')]).toEqual([3, 7, undefined])
  expect(measured).toEqual(['one', 'two'])
  expect(costs.revision).toBe(3)
})
