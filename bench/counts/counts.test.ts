import { runScript } from '@gatehouse/tools/run-script'
import { expect, test } from 'vitest'

import type { Verdict } from './guards.ts'

// Each figure with a guard is a test, so that it is counted and named like any other.

const output = await runScript(['bench/counts/counts.ts', '--json'], { environment: process.env })
const { verdicts: all, details } = JSON.parse(output) as { verdicts: Verdict[]; details: string[] }
const verdicts = all.filter(({ guard }) => guard !== '')

test.each(verdicts)('per call, $what: $guard', ({ value, guard, holds }) => {
  expect({ value, guard, holds }, details.join('\n')).toEqual({ value, guard, holds: true })
})

test('there are guards for plain and streamed calls, one at a time and many at once', () => {
  const groups = new Set(verdicts.map(({ what }) => what.split(':')[0]))
  expect(groups.size).toBe(4)
})
