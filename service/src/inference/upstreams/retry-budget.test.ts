import { expect, test } from 'vitest'

import { createRetryBudget } from './health.ts'

test('however much fails, at most ten retries and then one for ten calls', () => {
  const budget = createRetryBudget()
  let retries = 0
  for (let calls = 0; calls < 1000; calls++) {
    budget.noteCall()
    if (budget.mayRetry()) retries++
  }
  expect(retries).toBeGreaterThanOrEqual(109)
  expect(retries).toBeLessThanOrEqual(111)
})
