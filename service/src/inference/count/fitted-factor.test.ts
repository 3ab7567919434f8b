import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createFittedFactors } from './fitted-factor.ts'

const observe = (
  factors: ReturnType<typeof createFittedFactors>,
  times: number,
  ratio: number,
  script: 'ascii' | 'other' = 'ascii',
) => {
  for (let index = 0; index < times; index++) {
    const localTokens = 1000 + index
    const upstreamTokens = Math.round(localTokens * ratio)
    factors.observe({ model: 'm', script, localTokens, upstreamTokens })
  }
}

test('a factor starts at the value of the catalogue', () => {
  const factors = createFittedFactors()
  expect(factors.factorsOf('gpt-5')).toEqual({ ascii: 1, other: 1 })
  expect(factors.factorsOf('anthropic/Claude-Opus-5', 1.2)).toEqual({ ascii: 1.2, other: 1.2 })
})

test('observations adjust a factor from its start value', () => {
  const factors = createFittedFactors()
  expect(factors.factorsOf('m', 1.3)).toEqual({ ascii: 1.3, other: 1.3 })
  factors.observe({
    model: 'm',
    start: 1.3,
    script: 'ascii',
    localTokens: 1000,
    upstreamTokens: 1300,
  })
  expect(factors.factorsOf('m')).toEqual({ ascii: 1.3, other: 1.3 })
})

test('a factor converges to 1.17 if the upstream counts 1.17 times as many tokens', () => {
  const factors = createFittedFactors()
  observe(factors, 200, 1.17)
  expect(factors.factorsOf('m').ascii).toBeCloseTo(1.17, 2)
  expect(factors.factorsOf('m').other).toBe(1)
})

test('a factor follows an upstream that changes its vocabulary', () => {
  const factors = createFittedFactors()
  observe(factors, 5000, 1.0, 'other')
  observe(factors, 250, 1.4, 'other')
  expect(factors.factorsOf('m').other).toBeCloseTo(1.4, 2)
})

test('an upstream that reports wrong usage moves a factor to its bounds and no further', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 10_000 }), fc.double()), { maxLength: 200 }),
      (reports) => {
        const factors = createFittedFactors()
        for (const [localTokens, upstreamTokens] of reports) {
          factors.observe({ model: 'm', script: 'ascii', localTokens, upstreamTokens })
        }
        const { ascii } = factors.factorsOf('m')
        expect(ascii).toBeGreaterThanOrEqual(0.7)
        expect(ascii).toBeLessThanOrEqual(1.6)
      },
    ),
  )
  const factors = createFittedFactors()
  observe(factors, 1000, 1_000_000)
  expect(factors.factorsOf('m').ascii).toBeCloseTo(1.6, 3)
  observe(factors, 1000, 0.0011)
  expect(factors.factorsOf('m').ascii).toBeCloseTo(0.7, 3)
})

test('one wrong report hardly moves a factor', () => {
  const factors = createFittedFactors()
  observe(factors, 100, 1)
  observe(factors, 1, 1_000_000)
  expect(factors.factorsOf('m').ascii).toBeLessThan(1.02)
})

test('impossible usage and short prompts are ignored', () => {
  const factors = createFittedFactors()
  for (const upstreamTokens of [-5, NaN, Infinity, 1.5, 0, 2 ** 60]) {
    factors.observe({ model: 'm', script: 'ascii', localTokens: 1000, upstreamTokens })
  }
  factors.observe({ model: 'm', script: 'ascii', localTokens: 10, upstreamTokens: 16 })
  expect(factors.exportState()).toEqual({})
})

test('exported factors can be restored, and damaged entries are dropped', () => {
  const factors = createFittedFactors()
  observe(factors, 50, 1.3)
  const stored: unknown = JSON.parse(JSON.stringify(factors.exportState()))
  expect(createFittedFactors(stored).exportState()).toEqual(factors.exportState())

  const good = { factor: 1.1, observations: 3 }
  const damaged = {
    a: { ascii: good, other: { factor: 90, observations: 1 } },
    b: { ascii: good, other: { factor: 1, observations: -1 } },
    c: null,
    d: { ascii: good, other: good },
  }
  expect(Object.keys(createFittedFactors(damaged).exportState())).toEqual(['d'])
  for (const nothing of [null, 5, 'x', []]) {
    expect(createFittedFactors(nothing).exportState()).toEqual({})
  }
})

test('a later import does not overwrite factors that have been observed', () => {
  const [earlier, factors] = [createFittedFactors(), createFittedFactors()]
  observe(earlier, 50, 1.3)
  factors.importState(earlier.exportState())
  expect(factors.exportState()).toEqual(earlier.exportState())
  observe(factors, 50, 0.8)
  const learnt = factors.factorsOf('m')
  factors.importState(earlier.exportState())
  expect(factors.factorsOf('m')).toEqual(learnt)
})

test('the number of models is bounded', () => {
  const factors = createFittedFactors()
  for (let index = 0; index < 1500; index++) {
    factors.observe({ model: `m${index}`, script: 'ascii', localTokens: 100, upstreamTokens: 110 })
  }
  expect(Object.keys(factors.exportState())).toHaveLength(1000)
})

test('factors survive a restart, and a second import does not overwrite newer observations', () => {
  const before = createFittedFactors()
  observe(before, 200, 1.17)
  const after = createFittedFactors()
  after.importState(JSON.parse(JSON.stringify(before.exportState())))
  expect(after.factorsOf('m')).toEqual(before.factorsOf('m'))
  observe(after, 200, 1.4)
  const learnt = after.factorsOf('m')
  after.importState(before.exportState())
  expect(after.factorsOf('m')).toEqual(learnt)
})
