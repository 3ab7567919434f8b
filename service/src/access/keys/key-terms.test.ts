import { expect, test } from 'vitest'

import { decideBudget, decideLifetime } from './key-terms.ts'

/** What is decided, or the parameter that is refused. */
function found<T>(decide: () => T): T | string {
  try {
    return decide()
  } catch (error) {
    const { status, param } = error as { status: number; param: string }
    return `${status} ${param}`
  }
}

const refused = '422 body.expires_in_seconds'

test.each([
  // asked, prescribed, usual, decided
  [undefined, null, null, null],
  [undefined, null, 60, 60],
  [undefined, 30, 60, 30],
  [undefined, 90, 60, 90],
  [null, null, 60, 60],
  [null, 30, 60, 30],
  [5, null, 60, 5],
  [500, null, 60, 500],
  [30, 30, null, 30],
  [31, 30, null, refused],
  [1, 30, null, 1],
] as const)(
  'lifetime: asked for %s, the project prescribes %s, usually %s: %s',
  (asked, prescribedSeconds, usualSeconds, decided) => {
    expect(found(() => decideLifetime(asked, { prescribedSeconds, usualSeconds }))).toBe(decided)
  },
)

const budget = (credits: number, hard_stop = true) => ({
  credits,
  alert_percents: [80],
  hard_stop,
})
const more = '422 body.monthly_budget'

test.each([
  // asked, prescribed, decided
  [undefined, null, null],
  [null, null, null],
  [budget(5), null, budget(5)],
  [undefined, budget(10), budget(10)],
  [null, budget(10), budget(10)],
  [budget(10), budget(10), budget(10)],
  [budget(11), budget(10), more],
  [budget(10, false), budget(10), more],
  [budget(10, true), budget(10, false), budget(10, true)],
  [budget(10, false), budget(10, false), budget(10, false)],
] as const)('budget: asked for %j, the project prescribes %j: %j', (asked, prescribed, decided) => {
  const copy = <T>(value: T) => structuredClone(value) as never
  expect(found(() => decideBudget(copy(asked), copy(prescribed)))).toEqual(decided)
})
