import { expect, test } from 'vitest'

import { createOpenCalls } from './open-calls.ts'

test('who waits for the end of all calls waits for the last of them', async () => {
  const calls = createOpenCalls()
  await calls.ended(0)
  const [one, other] = [calls.begin(), calls.begin()]
  let hasEnded = false
  const ended = calls.ended(10_000).then(() => (hasEnded = true))
  one[Symbol.dispose]()
  await Promise.resolve()
  expect(hasEnded).toBe(false)
  other[Symbol.dispose]()
  await ended
})

test('the wait has an end', async () => {
  const calls = createOpenCalls()
  calls.begin()
  await expect(calls.ended(1)).resolves.toBeUndefined()
})
