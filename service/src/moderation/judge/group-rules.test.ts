import fc from 'fast-check'
import { expect, test } from 'vitest'

import { estimateTokens, groupRules, needsSecondLook } from './group-rules.ts'

const tokens = (count: number) => 'word'.repeat(count)
const rule = (policyId: string, text: string) => ({ policyId, version: 1, text })

const anyRules = fc
  .uniqueArray(
    fc.record({ id: fc.integer({ min: 0, max: 999 }), size: fc.integer({ min: 1, max: 3000 }) }),
    { selector: ({ id }) => id, maxLength: 40 },
  )
  .map((rules) => rules.map(({ id, size }) => rule(`pol_${id}`, tokens(size))))

test('every rule is in one group, and no group is too large', () => {
  fc.assert(
    fc.property(anyRules, fc.integer({ min: 1, max: 6 }), (rules, rulesPerCall) => {
      const groups = groupRules(rules, rulesPerCall)
      expect(groups.flat().toSorted(byId)).toEqual(rules.toSorted(byId))
      for (const group of groups) {
        const sizes = group.map(({ text }) => estimateTokens(text))
        const isAlone = group.length === 1
        expect(isAlone || sizes.every((size) => size <= 1500)).toBe(true)
        expect(isAlone || sizes.reduce((sum, size) => sum + size) <= 2500).toBe(true)
        expect(group.length).toBeLessThanOrEqual(rulesPerCall)
      }
    }),
  )
})

test('the same rules give the same groups in whatever order they come', () => {
  const shuffled = anyRules.chain((rules) =>
    fc.tuple(
      fc.constant(rules),
      fc.shuffledSubarray(rules, { minLength: rules.length, maxLength: rules.length }),
    ),
  )
  fc.assert(
    fc.property(shuffled, ([rules, others]) => {
      expect(groupRules(others, 6)).toEqual(groupRules(rules, 6))
    }),
  )
})

test('a group has up to six rules or 2,500 tokens; a rule over 1,500 tokens is alone', () => {
  const small = Array.from({ length: 13 }, (_, index) => rule(`pol_${10 + index}`, 'No spam.'))
  expect(groupRules(small, 6).map((group) => group.length)).toEqual([6, 6, 1])

  const middle = ['a', 'b', 'c'].map((id) => rule(id, tokens(1250)))
  expect(groupRules(middle, 6).map((group) => group.length)).toEqual([2, 1])

  const [long, screened] = [rule('b', tokens(1501)), rule('c', tokens(1500))]
  const groups = groupRules([rule('a', 'No spam.'), long, screened], 6)
  expect(groups).toContainEqual([long])
  expect(groups).toContainEqual([rule('a', 'No spam.'), screened])
})

test('from 2,000 basis points on a rule is asked about alone', () => {
  expect([0, 1999, 2000, 10_000].map(needsSecondLook)).toEqual([false, false, true, true])
})

const byId = (one: { policyId: string }, other: { policyId: string }) =>
  one.policyId < other.policyId ? -1 : 1
