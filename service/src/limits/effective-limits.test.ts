import { expect, test } from 'vitest'

import { applyOverrides, createLimitsOf, sourceOf } from './effective-limits.ts'
import { defaultTable, readLimitsFile } from './limits-file.ts'
import { limitsByTier } from './tiers.ts'

const caller = { plan: 'free', paidMicroUsd: 0 } as const

test('without overrides the limits are those of the tier', () => {
  const limitsOf = createLimitsOf(() => defaultTable)
  expect(limitsOf({ ...caller, limitOverrides: null })).toBe(limitsByTier.free)
  expect(limitsOf({ ...caller, paidMicroUsd: 20_000_000, limitOverrides: null })).toBe(
    limitsByTier.tier_1,
  )
})

test('an override replaces the numbers it has, in its scope only', () => {
  const { organization, project, key } = limitsByTier.free
  expect(
    applyOverrides(limitsByTier.free, {
      organization: { tokens_per_day: 5 },
      key: { requests_per_minute: 1000, concurrent_requests: 1 },
    }),
  ).toEqual({
    organization: { ...organization, tokens_per_day: 5 },
    project,
    key: { ...key, requests_per_minute: 1000, concurrent_requests: 1 },
  })
})

test('members that this release does not know are left out', () => {
  const unknown = { key: { images_per_minute: 3 } } as object
  expect(applyOverrides(limitsByTier.free, unknown)).toEqual(limitsByTier.free)
})

test('the limits of cached overrides are one object, until the table or the tier changes', () => {
  let table = defaultTable
  const limitsOf = createLimitsOf(() => table)
  const limited = { ...caller, limitOverrides: { project: { requests_per_day: 3 } } }
  const first = limitsOf(limited)
  expect(limitsOf({ ...limited })).toBe(first)
  expect(limitsOf({ ...limited, plan: 'scale' }).key).toEqual(limitsByTier.tier_3.key)
  table = readLimitsFile('{"free": {"key": {"requests_per_minute": 7}}}')
  const changed = limitsOf(limited)
  expect(changed.key.requests_per_minute).toBe(7)
  expect(changed.project.requests_per_day).toBe(3)
})

test('the source of a number is the override, else the file, else the tier', () => {
  const table = readLimitsFile(
    '{"free": {"key": {"requests_per_minute": 7, "requests_per_day": 8}}}',
  )
  const limited = { ...caller, limitOverrides: { key: { requests_per_minute: 5 } } }
  expect([
    sourceOf(table, limited, 'key', 'requests_per_minute'),
    sourceOf(table, limited, 'key', 'requests_per_day'),
    sourceOf(table, limited, 'key', 'tokens_per_minute'),
    sourceOf(table, { ...limited, plan: 'scale' }, 'key', 'requests_per_day'),
    sourceOf(table, limited, 'project', 'requests_per_minute'),
  ]).toEqual(['override', 'file', 'tier', 'tier', 'tier'])
})
