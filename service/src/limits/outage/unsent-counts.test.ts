import { expect, test } from 'vitest'

import { absorb, type ScopeCounts } from '#limits/counters/absorb.ts'
import { createOrganizationCounts } from '#limits/counters/organization-counts.ts'
import { organizationUsage } from '#limits/counters/usage.ts'
import type { LimitedCall } from '#limits/limits.ts'

import { createUnsentCounts } from './unsent-counts.ts'

const nowMs = 1_700_000_000_000

/** Counts in memory what Redis would be sent; `onSend` runs while a batch is on its way. */
function setUp(onSend: () => void = () => undefined) {
  const received = createOrganizationCounts()
  const counts = createUnsentCounts({
    now: () => new Date(nowMs),
    redis: {
      async absorb(_: string, scopes: readonly ScopeCounts[]) {
        onSend()
        absorb(received, scopes, nowMs)
      },
    },
  })
  const receivedUsage = () => {
    const { organization } = organizationUsage(received, nowMs)
    return { requests: organization.requests_per_day, tokens: organization.tokens_per_day }
  }
  return { counts, received: receivedUsage }
}

let calls = 0
const call = (changes: Partial<LimitedCall> = {}): LimitedCall => ({
  organizationId: 'org',
  projectId: 'p',
  keyId: 'k',
  tokens: 100,
  leaseId: `req-${calls++}`,
  leaseMs: 60_000,
  ...changes,
})

test('each call is sent once, with what it used if it has ended', async () => {
  const { counts, received } = setUp()
  const [first, second] = [call(), call()]
  counts.add(first)
  counts.add(first)
  counts.add(second)
  counts.settle({ ...first, reserved: 100, used: 30, admittedAtMs: nowMs })
  await counts.send()
  await counts.send()
  expect(received()).toEqual({ requests: 2, tokens: 130 })
  expect(counts.isEmpty()).toBe(true)
})

test('a call that is added while others are sent stays unsent', async () => {
  const late = [call()]
  const { counts, received } = setUp(() => {
    for (const each of late.splice(0)) counts.add(each)
  })
  counts.add(call())
  await counts.send()
  expect(received().requests).toBe(1)
  expect(counts.isEmpty()).toBe(false)
  await counts.send()
  expect(received().requests).toBe(2)
})

test('calls that Redis did not confirm stay unsent, with those that were added meanwhile', async () => {
  let isAway = true
  const { counts, received } = setUp(() => {
    if (!isAway) return
    counts.add(call())
    throw new Error('away')
  })
  counts.add(call())
  counts.add(call({ organizationId: 'other' }))
  await expect(counts.send()).rejects.toThrow('away')
  isAway = false
  await counts.send()
  // Two organizations were sent at once, and a call was added with each.
  expect(received().requests).toBe(4)
  expect(counts.isEmpty()).toBe(true)
})
