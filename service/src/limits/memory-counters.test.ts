import { expect, test } from 'vitest'

import { createMemoryCounters } from './memory-counters.ts'
import { limitsByTier } from './tiers.ts'

const attempt = (organizationId: string) => ({
  ...{ organizationId, projectId: '', keyId: 'key_1', tokens: 0, leaseId: organizationId },
  leaseMs: 0,
})

test('the least recently active organization makes room for a new one', async () => {
  const counters = createMemoryCounters({ now: () => new Date(0), organizationsMax: 3 })
  for (const id of ['org_1', 'org_2', 'org_3', 'org_1', 'org_4']) {
    await counters.admit(attempt(id), limitsByTier.free)
  }
  expect([...counters.windows.keys()]).toEqual(['org_3', 'org_1', 'org_4'])
})

test('making room takes no longer for many than for few', async () => {
  const counters = createMemoryCounters({ now: () => new Date(0), organizationsMax: 20_000 })
  const add = async (from: number, count: number) => {
    const { user } = process.cpuUsage()
    for (let made = from; made < from + count; made++) {
      await counters.admit(attempt(`org_${made}`), limitsByTier.free)
    }
    return process.cpuUsage().user - user
  }
  const whileThereIsRoom = await add(0, 20_000)
  // Looking at all of them for each new one would take a thousand times as long.
  expect(await add(20_000, 20_000)).toBeLessThan(20 * whileThereIsRoom)
})
