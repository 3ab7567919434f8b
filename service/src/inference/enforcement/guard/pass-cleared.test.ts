import { expect, test } from 'vitest'

import { Changes } from './pass-cleared.ts'

test('a change wakes all that wait for it, and nothing that waits later', async () => {
  const changes = new Changes()
  changes.announce()
  expect(changes.isAwaited).toBe(false)
  const [one, other] = [changes.next(), changes.next()]
  expect(changes.isAwaited).toBe(true)
  changes.announce()
  expect(changes.isAwaited).toBe(false)
  await Promise.all([one, other])
  // A promise that outlives a wait would keep something of every wait of a long answer.
  expect(changes.next()).not.toBe(one)
})
