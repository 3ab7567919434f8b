import type { PolicyContent } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import type { GuardrailInForce } from '#gateway-config/guardrails/open-guardrails.ts'
import { finish } from '#platform/steps/steps.ts'
import { compilePolicy } from '#policies/compile.ts'
import { hashContent } from '#policies/policy.ts'
import { createTestClock } from '#testing/test-gateway.ts'
import { loadPatternEngine } from '#text/pattern-engine.ts'

import { createInForce, describePinned } from './in-force.ts'
import { makeSnapshot } from './snapshot.ts'

const engine = loadPatternEngine()
const day = 24 * 60 * 60 * 1000

const content: PolicyContent = {
  rule: 'cel: text.contains("unkind")',
  direction: 'both',
  mode: 'enforcing',
  scope: 'organization',
  project_ids: [],
  match_threshold_basis_points: null,
}
const policy = (changes: Partial<PolicyContent>) => {
  const changed = { ...content, ...changes }
  const sha256 = hashContent(changed).toString('hex')
  const named = { policyId: 'pol_1', name: 'Kindness', version: 1, sha256 }
  return finish(compilePolicy({ ...named, ...changed }, engine))
}
const snapshot = (epoch: number, mode: PolicyContent['mode'] = 'enforcing') =>
  makeSnapshot('org_1', epoch, [policy({ mode })])

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
    snapshot: { organizationId: 'org_1', epoch: 0, policies: [], gateway: null, guardrails: [] },
    isStale: false,
    isRolledBack: false,
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

test('an unattached policy enforces nothing, so its age does not matter', () => {
  const { inForce, clock } = setUp()
  const unattached = makeSnapshot('org_1', 1, [policy({ scope: 'unattached' })])
  inForce.restore({ snapshots: [unattached], failing: [], keptAtMs: clock.now().getTime() })
  clock.pass(day + 1)
  expect(inForce.pin('org_1').snapshot.epoch).toBe(1)
})

const guardrail = (changes: Partial<GuardrailInForce> = {}): GuardrailInForce => ({
  id: 'grd_1',
  name: 'Guard',
  url: 'https://guard.example.com',
  mode: 'enforcing',
  onError: 'refuse',
  deadlineMs: 2000,
  projectIds: null,
  sealedSecret: '',
  asked: null,
  ...changes,
})

test.each([
  ['enforcing', 'cannot be loaded'],
  ['monitoring', null],
] as const)('an old copy with a guardrail that is %s', (mode, problem) => {
  const { inForce, clock } = setUp()
  const old = makeSnapshot('org_1', 1, [], { guardrails: [guardrail({ mode })] })
  inForce.restore({ snapshots: [old], failing: [], keptAtMs: clock.now().getTime() })
  clock.pass(day + 1)
  if (problem) expect(() => inForce.pin('org_1')).toThrow(problem)
  else expect(inForce.pin('org_1').snapshot.epoch).toBe(1)
})

test('enforcing guardrails that cannot be asked count as policies that cannot be evaluated', () => {
  const { inForce } = setUp()
  const guardrails = [guardrail(), guardrail({ mode: 'monitoring' })]
  inForce.put(makeSnapshot('org_1', 1, [], { guardrails }))
  expect(inForce.unenforceable()).toBe(1)
  const { guardrails: described } = describePinned(
    { snapshot: inForce.get('org_1')!, isStale: false },
    true,
  )
  expect(described).toMatchObject([{ guardrail_id: 'grd_1', problem: expect.any(String) }, {}])
  inForce.put(makeSnapshot('org_1', 2, []))
  expect(inForce.unenforceable()).toBe(0)
})

test('enforcing policies that ask the judge are counted, until they are replaced', () => {
  const { inForce } = setUp()
  const [plain, gated] = [{ rule: 'Be kind.' }, { rule: 'when: stream\nBe kind.' }]
  const unseen = [
    policy({ ...plain, mode: 'monitoring' }),
    policy({ ...plain, scope: 'unattached' }),
  ]
  inForce.put(makeSnapshot('org_1', 1, [policy(plain), policy(gated), ...unseen, policy({})]))
  inForce.put(makeSnapshot('org_2', 1, [policy(plain)]))
  expect([inForce.judged(), inForce.unenforceable()]).toEqual([3, 0])
  const pinned = inForce.get('org_1')!
  const problemsOf = (hasJudge: boolean) =>
    describePinned({ snapshot: pinned, isStale: false }, hasJudge).policies.map(
      ({ problem }) => problem !== undefined,
    )
  expect(problemsOf(true)).toEqual([false, false, false, false, false])
  expect(problemsOf(false)).toEqual([true, true, false, false, false])
  inForce.put(snapshot(2))
  inForce.keepOnly(new Set(['org_1']))
  expect(inForce.judged()).toBe(0)
})

test('enforcing policies that cannot be evaluated are counted, until they are replaced', () => {
  const { inForce, clock } = setUp()
  const unbuilt = { rule: 'cel: mood("bad") > 0' }
  const broken = makeSnapshot('org_1', 1, [
    policy(unbuilt),
    policy({ ...unbuilt, mode: 'monitoring' }),
    policy({ ...unbuilt, scope: 'unattached' }),
    policy({}),
  ])
  inForce.restore({ snapshots: [broken], failing: [], keptAtMs: clock.now().getTime() })
  expect(inForce.unenforceable()).toBe(1)
  inForce.put(makeSnapshot('org_2', 1, [policy(unbuilt), policy(unbuilt)]))
  expect(inForce.unenforceable()).toBe(3)
  inForce.put(snapshot(2))
  expect(inForce.unenforceable()).toBe(2)
  inForce.keepOnly(new Set(['org_1']))
  expect(inForce.unenforceable()).toBe(0)
})
