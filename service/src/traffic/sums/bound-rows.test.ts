import { expect, test } from 'vitest'

import type { KeySum } from './add-up.ts'
import { boundKeys, nameOfKey, rowsMax } from './bound-rows.ts'

const sumOf = (keyId: string, calls = 1): KeySum => ({
  organizationId: 'org_1',
  day: '2026-06-01',
  keyId,
  outcome: 'completed',
  calls,
  inputTokens: 1,
  cachedInputTokens: 0,
  outputTokens: 0,
  credits: 0,
})
const filledTo = (rows: number) => [{ organizationId: 'org_1', at: '2026-06-01', rows }]

test('what there is no room for is added to the others; what is stored keeps its row', () => {
  const stored = new Set([nameOfKey(sumOf('old'))])
  const bounded = boundKeys(
    [sumOf('old'), sumOf('new'), sumOf('late', 2), sumOf('later', 3)],
    stored,
    filledTo(rowsMax - 1),
  )
  expect(bounded.map(({ keyId, calls }) => [keyId, calls])).toEqual([
    ['old', 1],
    ['new', 1],
    ['*', 5],
  ])
})

test('a day that is not nearly full takes everything', () => {
  expect(boundKeys([sumOf('a'), sumOf('b')], new Set(), [])).toHaveLength(2)
})
