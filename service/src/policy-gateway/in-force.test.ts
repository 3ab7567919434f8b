import type { PolicyContent } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import { createTestClock } from '#testing/test-gateway.ts'

import { createInForce } from './in-force.ts'
import { makeSnapshot } from './snapshot.ts'

const day = 24 * 60 * 60 * 1000

const content: PolicyContent = {
  rule: 'Be kind.',
  direction: 'both',
  mode: 'enforcing',
  scope: 'organization',
  project_ids: [],
  match_threshold_basis_points: null,
}
const policy = (mode: PolicyContent['mode']) => ({
  policyId: 'pol_1',
  version: 1,
  sha256: '00',
  content: { ...content, mode },
})
const snapshot = (epoch: number, mode: PolicyContent['mode'] = 'enforcing') =>
  makeSnapshot('org_1', epoch, [policy(mode)])

function setUp() {
  const clock = createTestClock()
  return { clock, inForce: createInForce(clock) }
}

test('requests are refused before any snapshot is known', () => {
  const { inForce } = setUp()
  expect(() => inForce.pin('org_1')).toThrow('cannot be loaded')
})

test('an organization without policies has an empty snapshot, once a poll has confirmed it', () => {
  const { inForce, clock } = setUp()
  inForce.confirm(clock.now().getTime())
  expect(inForce.pin('org_1')).toEqual({
    snapshot: { organizationId: 'org_1', epoch: 0, policies: [] },
    isStale: false,
  })
})

test('a pinned snapshot stays the same when another replaces it', () => {
  const { inForce, clock } = setUp()
  inForce.confirm(clock.now().getTime())
  inForce.put(snapshot(1))
  const pinned = inForce.pin('org_1')
  inForce.put(snapshot(2))
  expect([pinned.snapshot.epoch, inForce.pin('org_1').snapshot.epoch]).toEqual([1, 2])
})

test('a snapshot cannot be written to', () => {
  const made = snapshot(1)
  expect(() => Object.assign(made, { epoch: 2 })).toThrow(TypeError)
  expect(() => (made.policies as unknown[]).push(1)).toThrow(TypeError)
})

test('it is fresh for 3 seconds after the poll, then stale', () => {
  const { inForce, clock } = setUp()
  inForce.put(snapshot(1))
  inForce.confirm(clock.now().getTime())
  clock.pass(3000)
  expect(inForce.pin('org_1').isStale).toBe(false)
  clock.pass(1)
  expect(inForce.pin('org_1').isStale).toBe(true)
})

test('unconfirmed for a day: requests under enforcing policies are refused, under monitoring ones not', () => {
  for (const mode of ['enforcing', 'monitoring'] as const) {
    const { inForce, clock } = setUp()
    inForce.restore({
      snapshots: [snapshot(1, mode)],
      failing: [],
      keptAtMs: clock.now().getTime(),
    })
    clock.pass(day)
    expect(inForce.pin('org_1').snapshot.epoch).toBe(1)
    clock.pass(1)
    if (mode === 'enforcing') expect(() => inForce.pin('org_1')).toThrow('cannot be loaded')
    else expect(inForce.pin('org_1').isStale).toBe(true)
  }
})

test('the copy on disk never replaces what the database returned', () => {
  const { inForce, clock } = setUp()
  inForce.put(snapshot(5))
  inForce.restore({ snapshots: [snapshot(4)], failing: [], keptAtMs: clock.now().getTime() })
  expect(inForce.pin('org_1').snapshot.epoch).toBe(5)
  inForce.confirm(clock.now().getTime())
  inForce.restore({ snapshots: [makeSnapshot('org_2', 1, [])], failing: [], keptAtMs: 0 })
  expect(inForce.get('org_2')).toBeUndefined()
})

test('a failure leaves the older snapshot in force; without one requests are refused', () => {
  const { inForce, clock } = setUp()
  inForce.confirm(clock.now().getTime())
  inForce.put(snapshot(3))
  inForce.fail('org_1')
  inForce.fail('org_2')
  expect(inForce.pin('org_1')).toMatchObject({ snapshot: { epoch: 3 }, isStale: true })
  expect(() => inForce.pin('org_2')).toThrow('cannot be loaded')
  expect([...inForce.failures]).toEqual([
    ['org_1', 3],
    ['org_2', 0],
  ])
  inForce.put(snapshot(4))
  expect([...inForce.failures.keys()]).toEqual(['org_2'])
})

test('an organization that was failing before a restart is failing after it; an unknown one is refused after a day', () => {
  const { inForce, clock } = setUp()
  inForce.restore({ snapshots: [], failing: ['org_1'], keptAtMs: clock.now().getTime() })
  expect(() => inForce.pin('org_1')).toThrow('cannot be loaded')
  expect(inForce.pin('org_2').snapshot.epoch).toBe(0)
  clock.pass(day + 1)
  expect(() => inForce.pin('org_2')).toThrow('cannot be loaded')
})
