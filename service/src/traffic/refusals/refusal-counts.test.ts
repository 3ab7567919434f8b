import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createUnrecordedCounts, otherKeys, refusalRowsMax } from './refusal-counts.ts'

const at = new Date(0)
const refusalOf = (organizationId: string, keyId: string) => ({
  organizationId,
  projectId: 'proj_1',
  keyId,
  scope: 'key',
  metric: 'requests_per_minute',
})

test('however many callers are refused, the rows are bounded and every refusal counts', () => {
  const callers = fc.array(fc.tuple(fc.nat(2000), fc.nat(3000)), { maxLength: 6000 })
  fc.assert(
    fc.property(callers, (refused) => {
      const counts = createUnrecordedCounts('operator')
      for (const [organization, key] of refused) {
        counts.note(refusalOf(`org_${organization}`, `key_${key}`), at)
      }
      expect(counts.size()).toBeLessThanOrEqual(refusalRowsMax)
      const rows = counts.take()
      expect(rows.reduce((sum, { count }) => sum + count, 0)).toBe(refused.length)
      expect(counts.size()).toBe(0)
    }),
    { numRuns: 20 },
  )
})

test('one organization leaves room for others, and its further keys are one row', () => {
  const counts = createUnrecordedCounts('operator')
  for (let key = 0; key < 5000; key++) counts.note(refusalOf('org_loud', `key_${key}`), at)
  counts.note(refusalOf('org_quiet', 'key_1'), at)
  const rows = counts.take()
  expect(rows.filter(({ organizationId }) => organizationId === 'org_loud')).toHaveLength(201)
  expect(rows.find(({ keyId }) => keyId === otherKeys)).toMatchObject({
    organizationId: 'org_loud',
    projectId: '',
    scope: '',
    count: 4800,
  })
  expect(rows.at(-1)).toMatchObject({ organizationId: 'org_quiet', keyId: 'key_1', count: 1 })
})
