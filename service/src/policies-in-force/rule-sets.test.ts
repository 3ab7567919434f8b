import type { PolicyContent } from '@gatehouse/contract/policy'
import { expect, test } from 'vitest'

import { startBackgroundWork } from '#platform/steps/background-work.ts'
import { finish } from '#platform/steps/steps.ts'
import { compilePolicy } from '#policies/compile.ts'
import { answerFacts } from '#policies/guard/testing/rule-set-of.ts'
import { hashContent } from '#policies/policy.ts'
import {
  type CompiledPattern,
  loadPatternEngine,
  type PatternEngine,
} from '#text/pattern-engine.ts'

import { prepareRuleSets, type ProjectRules, ruleSetsOf } from './rule-sets.ts'
import { makeSnapshot } from './snapshot.ts'

const native = loadPatternEngine()

/** Counts the sets that are made of patterns. */
function countingEngine() {
  const engine = {
    ...native,
    joined: 0,
    joinInSteps(patterns: readonly CompiledPattern[]) {
      engine.joined++
      return native.joinInSteps(patterns)
    },
  }
  return engine
}

const content: PolicyContent = {
  rule: 'cel: text.matches("bomb")',
  direction: 'both',
  mode: 'enforcing',
  scope: 'organization',
  project_ids: [],
  match_threshold_basis_points: null,
}

function policy(policyId: string, changes: Partial<PolicyContent> = {}) {
  const changed = { ...content, ...changes }
  const sha256 = hashContent(changed).toString('hex')
  const named = { policyId, name: `Name of ${policyId}`, version: 3, sha256 }
  return finish(compilePolicy({ ...named, ...changed }, native))
}

const snapshotOf = (...policies: ReturnType<typeof policy>[]) => makeSnapshot('org_1', 1, policies)

const inProjects = (...project_ids: string[]) => ({ scope: 'projects' as const, project_ids })

const idsOf = ({ set }: ProjectRules) => set.rules.map(({ policyId }) => policyId)

test('the rules of a call are those of its project and direction; unattached ones apply to no call', async () => {
  const snapshot = snapshotOf(
    policy('all'),
    policy('requests', { direction: 'request' }),
    policy('responses', { direction: 'response' }),
    policy('one', inProjects('proj_1', 'proj_2')),
    policy('two', { ...inProjects('proj_2'), direction: 'response' }),
    policy('none', { scope: 'unattached' }),
  )
  const sets = ruleSetsOf(snapshot, native)
  expect(idsOf(await sets.for(null, 'request'))).toEqual(['all', 'requests'])
  expect(idsOf(await sets.for('proj_9', 'response'))).toEqual(['all', 'responses'])
  expect(idsOf(await sets.for('proj_1', 'request'))).toEqual(['all', 'requests', 'one'])
  expect(idsOf(await sets.for('proj_2', 'response'))).toEqual(['all', 'responses', 'one', 'two'])
})

test('a rule carries its name, version, mode and threshold, 5000 where none is set', async () => {
  const own = policy('own', { match_threshold_basis_points: 7, mode: 'monitoring' })
  const { set } = await ruleSetsOf(snapshotOf(policy('all'), own), native).for(null, 'request')
  expect(set.rules).toMatchObject([
    { policyName: 'Name of all', version: 3, mode: 'enforcing', threshold: 5000 },
    { policyName: 'Name of own', version: 3, mode: 'monitoring', threshold: 7 },
  ])
})

test('policies that cannot be evaluated are not in the set: enforcing ones refuse, others are named', async () => {
  const snapshot = snapshotOf(
    policy('unbuilt', { rule: 'cel: mood("bad") > 0' }),
    policy('watched', { rule: 'cel: mood("bad") > 0', mode: 'monitoring' }),
    policy('broken', { rule: 'cel: text.matches(', ...inProjects('proj_1') }),
    policy('good'),
  )
  const { set, unenforceable, unevaluated } = await ruleSetsOf(snapshot, native).for(
    'proj_1',
    'request',
  )
  expect(set.rules.map(({ policyId }) => policyId)).toEqual(['good'])
  expect(unenforceable.map(({ policyId }) => policyId)).toEqual(['unbuilt', 'broken'])
  expect(unevaluated).toEqual(['watched'])
  const elsewhere = await ruleSetsOf(snapshot, native).for('proj_2', 'request')
  expect(elsewhere.unenforceable.map(({ policyId }) => policyId)).toEqual(['unbuilt'])
})

test('a set is built once for all projects with the same policies', async () => {
  const engine = countingEngine()
  const snapshot = snapshotOf(policy('all'), policy('few', inProjects('proj_1', 'proj_2')))
  await prepareRuleSets(snapshot, engine, startBackgroundWork())
  const prepared = engine.joined
  expect(prepared).toBeGreaterThan(0)
  const sets = ruleSetsOf(snapshot, engine)
  const first = sets.for(null, 'request')
  expect(first).not.toBeInstanceOf(Promise)
  for (const id of ['proj_8', 'proj_9']) expect(sets.for(id, 'response')).toBe(first)
  expect(engine.joined).toBe(prepared)
  const few = await Promise.all([sets.for('proj_1', 'request'), sets.for('proj_2', 'request')])
  expect(few[0]).not.toBe(first)
  expect(few[1]).toBe(few[0])
  expect(sets.for('proj_1', 'request')).toBe(few[0])
  expect(await sets.for('proj_2', 'response')).toBe(few[0])
  expect(engine.joined).toBe(prepared * 2)
  expect(ruleSetsOf(snapshot, engine)).toBe(sets)
})

test('what guards answers is ready with the set, unless it only judges requests', async () => {
  const engine = countingEngine()
  const snapshot = snapshotOf(policy('all'), policy('asked', { direction: 'request' }))
  await prepareRuleSets(snapshot, engine, startBackgroundWork())
  const { set } = await ruleSetsOf(snapshot, engine).for(null, 'response')
  const prepared = engine.joined
  expect(prepared).toBe(3) // the requests' and the answers' patterns, and those of the guard
  set.openAnswer(answerFacts)
  expect(engine.joined).toBe(prepared)
})

test('another snapshot has sets of its own', async () => {
  const [old, next] = [snapshotOf(policy('a')), snapshotOf(policy('a'), policy('b'))]
  expect(idsOf(await ruleSetsOf(old, native).for(null, 'request'))).toEqual(['a'])
  expect(idsOf(await ruleSetsOf(next, native).for(null, 'request'))).toEqual(['a', 'b'])
})

test('rules that cannot be compiled together refuse what they should judge', async () => {
  const failing: PatternEngine = {
    ...native,
    joinInSteps(patterns) {
      if (patterns.length > 0) throw new Error('out of memory')
      return native.joinInSteps(patterns)
    },
  }
  const snapshot = snapshotOf(policy('a'), policy('b', { mode: 'monitoring' }))
  const { set, unenforceable, unevaluated } = await ruleSetsOf(snapshot, failing).for(
    null,
    'request',
  )
  expect(set.rules).toEqual([])
  expect(unenforceable.map(({ policyId }) => policyId)).toEqual(['a'])
  expect(unevaluated).toEqual(['b'])
})
