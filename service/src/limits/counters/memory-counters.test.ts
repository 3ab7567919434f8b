import { expect, test } from 'vitest'

import { unlimited } from '#limits/limits.ts'
import { limitsByTier } from '#limits/tiers.ts'

import { createMemoryCounters } from './memory-counters.ts'

const call = (organizationId: string) => ({
  organizationId,
  projectId: '',
  keyId: 'key_1',
  tokens: 0,
  leaseId: organizationId,
  leaseMs: 0,
})

test('a new organization takes the place of the least recently active one', async () => {
  const counters = createMemoryCounters({ now: () => new Date(0), organizationsMax: 3 })
  for (const id of ['org_1', 'org_2', 'org_3', 'org_1', 'org_4']) {
    await counters.admit(call(id), limitsByTier.free)
  }
  expect([...counters.organizations.keys()]).toEqual(['org_3', 'org_1', 'org_4'])
})

test('hundreds of slots: exactly the limit is admitted at once', async () => {
  const counters = createMemoryCounters({ now: () => new Date(0) })
  const key = { ...unlimited, concurrent_requests: 300 }
  const limits = { organization: unlimited, project: unlimited, key }
  const verdicts = await Promise.all(
    Array.from({ length: 310 }, (_, number) =>
      counters.admit({ ...call('org_1'), leaseId: `req-${number}`, leaseMs: 1000 }, limits),
    ),
  )
  expect(verdicts.filter(({ refusal }) => refusal === null)).toHaveLength(300)
})

test.each([
  [10_000, 'requests_per_minute', 51_000],
  [59_999, 'requests_per_minute', 1001],
  [60_000, 'concurrent_requests', 1000],
  [60_500, 'concurrent_requests', 1000],
] as const)(
  'after %i ms, of two limits that are reached, the one with the longer wait is reported: %s',
  async (afterMs, metric, waitMs) => {
    let nowMs = 0
    const counters = createMemoryCounters({ now: () => new Date(nowMs) })
    const key = { ...unlimited, requests_per_minute: 1, concurrent_requests: 1 }
    const limits = { organization: unlimited, project: unlimited, key }
    const admit = (leaseId: string) =>
      counters.admit({ ...call('org_1'), leaseId, leaseMs: 120_000 }, limits)
    expect((await admit('first')).refusal).toBe(null)
    nowMs = afterMs
    expect((await admit('second')).refusal).toEqual({ scope: 'key', metric, waitMs })
  },
)

test('dropping an organization does not look at all of them', async () => {
  const counters = createMemoryCounters({ now: () => new Date(0), organizationsMax: 20_000 })
  const add = async (from: number, count: number) => {
    const { user } = process.cpuUsage()
    for (let made = from; made < from + count; made++) {
      await counters.admit(call(`org_${made}`), limitsByTier.free)
    }
    return process.cpuUsage().user - user
  }
  const withoutDropping = await add(0, 20_000)
  // Looking at 20,000 organizations for each new one would take about a thousand times as long.
  expect(await add(20_000, 20_000)).toBeLessThan(20 * withoutDropping)
}, 60_000)
