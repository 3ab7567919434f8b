import { createHash } from 'node:crypto'
import { isDeepStrictEqual } from 'node:util'

import type { PolicyContent, PolicyEdit } from '@gatehouse/contract/policy'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import {
  contentOf,
  draftPolicy,
  editPolicy,
  hashContent,
  hasUnpublishedChanges,
  isScopeValid,
  move,
  type Policy,
  publish,
  restoreVersion,
  type Version,
} from './policy.ts'

const now = new Date('2026-06-01T12:00:00Z')
const later = new Date('2026-06-01T13:00:00Z')

/** Few values each, so that equal contents are as likely as different ones. */
const fewContents: fc.Arbitrary<PolicyContent> = fc.record({
  rule: fc.constantFrom('a', 'b', 'a","scope":"b'),
  direction: fc.constantFrom('request', 'response', 'both'),
  mode: fc.constantFrom('monitoring', 'enforcing'),
  scope: fc.constantFrom('organization', 'projects', 'unattached'),
  project_ids: fc.uniqueArray(fc.constantFrom('p', 'q', 'p","q', 'é', '💥'), { maxLength: 3 }),
  match_threshold_basis_points: fc.constantFrom(null, 1, 5000, 9999),
})
const anyContent: fc.Arbitrary<PolicyContent> = fc
  .tuple(fewContents, fc.string({ unit: 'binary' }), fc.uniqueArray(fc.string()))
  .map(([content, rule, project_ids]) => ({ ...content, rule, project_ids }))

/** Project ids are compared as a set, everything else for equality; without hashing. */
const demandsTheSame = (one: PolicyContent, two: PolicyContent) =>
  one.rule === two.rule &&
  one.direction === two.direction &&
  one.mode === two.mode &&
  one.scope === two.scope &&
  one.match_threshold_basis_points === two.match_threshold_basis_points &&
  isDeepStrictEqual(new Set(one.project_ids), new Set(two.project_ids))

const made = { id: 'pol_1', managedBy: null, now }

const draft = (content: Partial<PolicyContent> = {}) =>
  draftPolicy({ name: 'Name', description: 'Text', rule: 'a', ...content }, made)

const edit = (policy: Policy, wish: Partial<PolicyEdit>) =>
  editPolicy(policy, { revision: policy.revision, ...wish }, later)

test('the hash is of the canonical form, which must never change: hashes are stored', () => {
  const content: PolicyContent = {
    rule: 'No "weapons"\n💥',
    direction: 'both',
    mode: 'enforcing',
    scope: 'projects',
    project_ids: ['proj_b', 'proj_a'],
    match_threshold_basis_points: null,
  }
  const canonical =
    '{"direction":"both","match_threshold_basis_points":null,"mode":"enforcing",' +
    '"project_ids":["proj_a","proj_b"],"rule":"No \\"weapons\\"\\n💥","scope":"projects"}'
  expect(hashContent(content)).toEqual(createHash('sha256').update(canonical).digest())
  expect(content.project_ids).toEqual(['proj_b', 'proj_a'])
})

test('the order of project ids does not matter to the hash', () => {
  const shuffled = anyContent.chain((content) =>
    fc.tuple(
      fc.constant(content),
      fc.shuffledSubarray(content.project_ids, { minLength: content.project_ids.length }),
    ),
  )
  fc.assert(
    fc.property(shuffled, ([content, project_ids]) => {
      expect(hashContent({ ...content, project_ids })).toEqual(hashContent(content))
    }),
  )
})

test('two contents have the same hash exactly when they are equal', () => {
  fc.assert(
    fc.property(fewContents, fewContents, (one, two) => {
      expect(hashContent(one).equals(hashContent(two))).toBe(demandsTheSame(one, two))
      // Most pairs differ in much: these differ in one member, or in none.
      for (const key of Object.keys(one) as (keyof PolicyContent)[]) {
        const near = { ...one, [key]: two[key] }
        expect(hashContent(one).equals(hashContent(near))).toBe(demandsTheSame(one, near))
      }
    }),
    { numRuns: 500 },
  )
})

test('a new draft has the defaults, and null is the same as nothing', () => {
  const expected = {
    id: 'pol_1',
    name: 'Name',
    description: '',
    rule: 'a',
    direction: 'both',
    mode: 'monitoring',
    scope: 'unattached',
    project_ids: [],
    base_version: null,
    match_threshold_basis_points: null,
    state: 'draft',
    revision: 1,
    current_version: null,
    published_sha256: null,
    drafted_by: null,
    managed_by: null,
    created_at: now,
    updated_at: now,
  }
  const nulls = { direction: null, mode: null, scope: null, project_ids: null, description: null }
  for (const wish of [{}, { ...nulls, match_threshold_basis_points: null }]) {
    const policy = draftPolicy({ name: 'Name', rule: 'a', ...wish }, made)
    expect(policy).toEqual({ ...expected, draft_sha256: hashContent(policy) })
    expect(hasUnpublishedChanges(policy)).toBe(true)
  }
})

test('duplicate projects are removed, each keeping its first position', () => {
  const project_ids = ['b', 'a', 'b', 'c', 'a']
  expect(draft({ scope: 'projects', project_ids }).project_ids).toEqual(['b', 'a', 'c'])
  expect(edit(draft(), { scope: 'projects', project_ids }).project_ids).toEqual(['b', 'a', 'c'])
})

test('an edit of nothing but nulls is the policy itself, but for the threshold it clears', () => {
  const nulls = {
    name: null,
    description: null,
    rule: null,
    direction: null,
    mode: null,
    scope: null,
    project_ids: null,
  }
  fc.assert(
    fc.property(anyContent, (content) => {
      const policy = draft(content)
      expect(edit(policy, {})).toBe(policy)
      expect(edit(policy, nulls)).toBe(policy)
      const cleared = edit(policy, { ...nulls, match_threshold_basis_points: null })
      if (policy.match_threshold_basis_points === null) expect(cleared).toBe(policy)
      else {
        const match_threshold_basis_points = null
        expect(cleared).toEqual({
          ...policy,
          match_threshold_basis_points,
          revision: 2,
          updated_at: later,
          draft_sha256: hashContent({ ...policy, match_threshold_basis_points }),
        })
      }
    }),
  )
})

test('an edit sets what it names, and raises the revision by one exactly when that is something new', () => {
  fc.assert(
    fc.property(fewContents, fewContents, fc.boolean(), (one, two, isRenamed) => {
      const policy = draft(one)
      const name = isRenamed ? 'Other' : 'Name'
      const edited = edit(policy, { ...two, name })
      expect(edited === policy).toBe(!isRenamed && demandsTheSame(one, two))
      const isNew = edited !== policy
      expect([edited.revision, edited.updated_at]).toEqual(isNew ? [2, later] : [1, now])
      expect(edited.draft_sha256).toEqual(hashContent(two))
      expect(demandsTheSame(edited, two)).toBe(true)
      expect(edited.name).toBe(name)
    }),
  )
})

test('editing back to what is published leaves nothing to publish', () => {
  fc.assert(
    fc.property(fewContents, fewContents, (one, two) => {
      const { policy } = publish(draft(one), 'polver_1', now)
      expect(hasUnpublishedChanges(policy)).toBe(false)
      const away = edit(policy, two)
      expect(hasUnpublishedChanges(away)).toBe(!demandsTheSame(one, two))
      const back = edit(away, { ...one, project_ids: one.project_ids.toReversed() })
      expect(hasUnpublishedChanges(back)).toBe(false)
    }),
  )
})

test('name and description are no part of what is published', () => {
  const { policy } = publish(draft(), 'polver_1', now)
  const renamed = edit(policy, { name: 'Other', description: '' })
  expect(renamed).toEqual({
    ...policy,
    name: 'Other',
    description: '',
    revision: 3,
    updated_at: later,
  })
  expect(hasUnpublishedChanges(renamed)).toBe(false)
})

test('pausing and resuming change the state and the revision alone; what is not allowed is null', () => {
  const { policy, version } = publish(draft({ mode: 'enforcing' }), 'polver_1', now)
  const paused = move(policy, 'pause', version, later)
  expect(paused).toEqual({ ...policy, state: 'paused', revision: 3, updated_at: later })
  expect(move(policy, 'resume', version, later)).toBeNull()
  expect(move(draft(), 'pause', undefined, later)).toBeNull()
  // The draft's mode has no say: the version comes back in force as it was published.
  const edited = edit(paused!, { mode: 'monitoring' })
  expect(move(edited, 'resume', version, later)).toMatchObject({ state: 'enforcing', revision: 5 })
})

test('restoring copies the content and remembers the version; what is there already stays', () => {
  const first = publish(draft({ rule: 'one' }), 'polver_1', now)
  const second = publish(edit(first.policy, { rule: 'two' }), 'polver_2', now)
  expect(restoreVersion(second.policy, second.version, later)).toBe(second.policy)
  const restored = restoreVersion(second.policy, first.version, later)
  expect(restored).toEqual({
    ...second.policy,
    rule: 'one',
    draft_sha256: first.version.sha256,
    base_version: 1,
    revision: second.policy.revision + 1,
    updated_at: later,
  })
  expect(hasUnpublishedChanges(restored)).toBe(true)
  expect(restoreVersion(restored, first.version, later)).toBe(restored)
  // Published once more, the same content is another version: only what the draft is based on changes.
  const third = publish(restored, 'polver_3', now)
  const rebased = restoreVersion(third.policy, first.version, later)
  expect(rebased).toEqual({ ...third.policy, base_version: 1, revision: 7, updated_at: later })
  expect(hasUnpublishedChanges(rebased)).toBe(false)
})

test.each([
  ['projects', ['a'], true],
  ['projects', [], false],
  ['organization', [], true],
  ['organization', ['a'], false],
  ['unattached', [], true],
  ['unattached', ['a'], false],
] as const)('scope %s with %j is valid: %s', (scope, project_ids, expected) => {
  expect(isScopeValid({ ...draft(), scope, project_ids: [...project_ids] })).toBe(expected)
})

type Step =
  | { do: 'edit'; content: PolicyContent }
  | { do: 'publish' | 'pause' | 'resume' }
  | { do: 'restore'; nth: number }
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('edit' as const), content: fewContents }),
  fc.record({ do: fc.constantFrom('publish' as const, 'pause' as const, 'resume' as const) }),
  fc.record({ do: fc.constant('restore' as const), nth: fc.nat(20) }),
)

/** What the endpoints do with a step: the policy after it, or the same one when it is refused. */
function take(policy: Policy, step: Step, versions: Version[]): Policy {
  if (step.do === 'edit') return edit(policy, step.content)
  if (step.do === 'restore') {
    const version = versions[step.nth % Math.max(versions.length, 1)]
    return version ? restoreVersion(policy, version, later) : policy
  }
  if (step.do !== 'publish') return move(policy, step.do, versions.at(-1), later) ?? policy
  if (!hasUnpublishedChanges(policy)) return policy
  const published = publish(policy, `polver_${versions.length + 1}`, later)
  versions.push(published.version)
  return published.policy
}

test('any sequence of changes keeps the invariants of a policy', () => {
  fc.assert(
    fc.property(
      fewContents,
      fc.array(anyStep, { maxLength: 30, size: 'max' }),
      (content, steps) => {
        const versions: Version[] = []
        let policy = draft(content)
        for (const step of steps) {
          const before = policy
          policy = take(policy, step, versions)
          const current = versions.at(-1)
          expect(policy.revision).toBe(before.revision + (policy === before ? 0 : 1))
          expect(versions.map(({ version }) => version)).toEqual(
            versions.map((_, index) => index + 1),
          )
          expect(policy.current_version).toBe(current?.version ?? null)
          expect(policy.published_sha256).toEqual(current?.sha256 ?? null)
          expect(policy.draft_sha256).toEqual(hashContent(policy))
          expect(policy.state === 'draft').toBe(versions.length === 0)
          if (current && policy.state !== 'paused') expect(policy.state).toBe(current.mode)
          if (step.do !== 'resume' && before.state === 'paused') expect(policy.state).toBe('paused')
          const hasChanges = !current || !demandsTheSame(contentOf(policy), contentOf(current))
          expect(hasUnpublishedChanges(policy)).toBe(hasChanges)
        }
      },
    ),
  )
})
