import {
  AdminKeyPermission,
  defaultProjectKeyPermissions,
  type Permission,
} from '@gatehouse/contract/permission'
import { ProjectRole, Role } from '@gatehouse/contract/role'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { Actor } from '#testing/members/member-model.ts'
import {
  countActiveOwners,
  everythingIn,
  firstKeyName,
  gainedIn,
  holdingsIn,
  type MemberState,
  readMembers,
  stateOf,
} from '#testing/members/member-state.ts'
import {
  openSequence,
  type Sequence,
  type Step,
  takeStep,
  tryProjectKeys,
} from '#testing/members/member-steps.ts'
import { createTestApi } from '#testing/test-api.ts'

// Random sequences of invitations, changes, removals, sign-ins, memberships of projects and keys, by random actors: every answer
// and what is there afterwards are those of a model, and project keys are let in as it says. Whatever the model says, nothing that is gained was not held by the one who gave it, and
// an active owner is left once there was one. MEMBER_SEQUENCES sets how many, MEMBER_SEED repeats a run.

const sequences = sizeOf({ usual: 150, long: 10_000, variable: 'MEMBER_SEQUENCES' })
const seed = Number(process.env['MEMBER_SEED'] ?? Date.now() % 2 ** 31)
const atOnce = 6

const emails = ['ada', 'bob', 'cy', 'dot'].map((name) => `${name}@example.com`)
const keys = ['first', 'second', 'third']
const email = fc.constantFrom(...emails)
/** Mostly the roles that decide about others. */
const role = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom<Role>('owner', 'admin') },
  { weight: 2, arbitrary: fc.constantFrom(...Role.options) },
)
const by: fc.Arbitrary<Actor> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...keys).map((key) => ({ key })) },
  { weight: 3, arbitrary: email.map((member) => ({ member })) },
)
const status = fc.constantFrom('active', 'suspended')
/** Keys that could get more through others: each may manage members or keys. */
const grants: readonly (readonly Permission[])[] = [
  ['members.write'],
  ['members.write', 'projects.read', 'credits.read', 'credits.write'],
  ['admin_api_keys.write'],
  ['admin_api_keys.write', 'members.write', 'policies.read'],
  AdminKeyPermission.options,
]

const project = fc.constantFrom<0 | 1>(0, 0, 1)
const projectKey = fc.constantFrom('one', 'two', 'three', 'four', 'five')
const projectGrants: readonly (readonly Permission[])[] = [
  defaultProjectKeyPermissions,
  ['model.invoke'],
  ['model.invoke', 'policy_gateway.write'],
  ['exports.read', 'exports.write'],
]

const steps: Record<Step['kind'], [weight: number, fc.Arbitrary<Step>]> = {
  invite: [4, fc.record({ kind: fc.constant('invite'), by, email, role })],
  sign_in: [4, fc.record({ kind: fc.constant('sign_in'), by, email })],
  edit: [
    8,
    fc.oneof(
      fc.record({ kind: fc.constant('edit'), by, email, role }),
      fc.record({ kind: fc.constant('edit'), by, email, status }),
      fc.record({ kind: fc.constant('edit'), by, email, role, status }),
    ),
  ],
  remove: [1, fc.record({ kind: fc.constant('remove'), by, email })],
  make_key: [
    1,
    fc.record({
      kind: fc.constant('make_key'),
      by,
      name: fc.constantFrom(...keys.slice(1)),
      permissions: fc.constantFrom(...grants),
    }),
  ],
  join: [
    5,
    fc.record({
      kind: fc.constant('join'),
      by,
      project,
      email,
      projectRole: fc.constantFrom(...ProjectRole.options),
    }),
  ],
  leave: [1, fc.record({ kind: fc.constant('leave'), by, project, email })],
  make_project_key: [
    4,
    fc.record({
      kind: fc.constant('make_project_key'),
      by,
      project,
      name: projectKey,
      own: fc.constantFrom(undefined, undefined, true, false),
      permissions: fc.constantFrom(...projectGrants),
    }),
  ],
  revoke_project_key: [
    1,
    fc.record({ kind: fc.constant('revoke_project_key'), by, project, name: projectKey }),
  ],
}
const step = fc.oneof(...Object.values(steps).map(([weight, arbitrary]) => ({ weight, arbitrary })))

/** Most sequences begin with an owner and an administrator who are signed in. */
const beginnings: readonly (readonly Step[])[] = [
  [],
  [
    { kind: 'invite', by: { key: 'first' }, email: emails[0]!, role: 'owner' },
    { kind: 'sign_in', by: { key: 'first' }, email: emails[0]! },
    { kind: 'invite', by: { key: 'first' }, email: emails[1]!, role: 'admin' },
    { kind: 'sign_in', by: { key: 'first' }, email: emails[1]! },
    { kind: 'make_key', by: { key: 'first' }, name: 'second', permissions: grants[1]! },
  ],
  [
    { kind: 'invite', by: { key: 'first' }, email: emails[1]!, role: 'developer' },
    { kind: 'sign_in', by: { key: 'first' }, email: emails[1]! },
    { kind: 'invite', by: { key: 'first' }, email: emails[2]!, role: 'developer' },
    { kind: 'sign_in', by: { key: 'first' }, email: emails[2]! },
    ...(
      [
        [1, 'project_admin'],
        [2, 'project_member'],
      ] as const
    ).map(([person, projectRole]) => ({
      kind: 'join' as const,
      by: { key: 'first' },
      project: 0 as const,
      email: emails[person]!,
      projectRole,
    })),
  ],
]

const met: Record<string, number> = {}
const count = (name: string) => (met[name] = (met[name] ?? 0) + 1)

/** Each of the rules is met. */
const usualOutcomes = [
  'invite 201',
  'invite 403 permission_denied',
  'invite 409 member_email_taken',
  'edit 200',
  'edit 403 permission_denied',
  'edit 404 member_not_found',
  'sign_in 200',
  'join 200',
  'join 403 permission_denied',
  'make_project_key 201',
  'make_project_key 403 permission_denied',
]
const rareOutcomes = [
  'invite 401 invalid_session',
  'edit 401 invalid_session',
  'edit 409 last_owner',
  'remove 200',
  'remove 403 permission_denied',
  'remove 409 last_owner',
  'make_key 201',
  'make_key 403 permission_denied',
  'sign_in 401',
  'key let in',
  'key refused',
  'join 401 invalid_session',
  'join 404 member_not_found',
  'leave 200',
  'leave 403 permission_denied',
  'leave 404 member_not_found',
  'make_project_key 401 invalid_session',
  'make_project_key 422 invalid_parameter',
  'revoke_project_key 200',
  'revoke_project_key 403 permission_denied',
  'revoke_project_key 404 api_key_not_found',
]

/** Keys have one name here once: the second of a name is another key. */
const isRepeated = (each: Step, { credentials, projectKeys }: Sequence) =>
  (each.kind === 'make_key' && credentials.has(each.name)) ||
  (each.kind === 'make_project_key' && projectKeys.has(each.name))

type Change = { before: MemberState; after: MemberState }

function expectSafe(each: Step, { before, after }: Change, projects: readonly string[]) {
  const gained = gainedIn(holdingsIn(before, projects), holdingsIn(after, projects))
  const held = heldBy(each.by, before, projects)
  const tooMuch = gained.filter((holding) => !held.has(holding))
  expect(tooMuch, JSON.stringify({ each, before, after })).toEqual([])
  if (countActiveOwners(before) > 0) expect(countActiveOwners(after)).toBeGreaterThan(0)
}

/** The one exception: while no owner is active, a key that can make keys makes one. */
function heldBy(actor: Actor, state: MemberState, projects: readonly string[]) {
  const name = 'member' in actor ? actor.member : actor.key === 'first' ? firstKeyName : actor.key
  const held = holdingsIn(state, projects).get(name) ?? new Set()
  const isFirst = countActiveOwners(state) === 0 && 'key' in actor
  return isFirst && held.has('admin_api_keys.write') ? everythingIn(projects) : held
}

async function run(all: readonly Step[], sequence: Sequence) {
  const { api, organizationId, expected, projects } = sequence
  let before = await readMembers(api.db, organizationId)
  for (const each of all) {
    if (isRepeated(each, sequence)) continue
    const taken = await takeStep(each, sequence)
    if (!taken) continue
    count(`${each.kind} ${taken.answer.join(' ')}`)
    const after = await readMembers(api.db, organizationId)
    expect(taken.answer, JSON.stringify({ each, before })).toEqual(taken.expected)
    expect(after).toEqual(stateOf(expected))
    if (each.kind !== 'sign_in') expectSafe(each, { before, after }, projects)
    before = after
  }
  for (const { name, isLetIn, isExpected } of await tryProjectKeys(sequence)) {
    count(isLetIn ? 'key let in' : 'key refused')
    expect(isLetIn, JSON.stringify({ name, before })).toBe(isExpected)
  }
}

test(`${sequences} random sequences: no one gives more than they hold, and the model never differs`, async () => {
  const startedAt = performance.now()
  console.log(`seed ${seed}`)
  const api = await createTestApi()
  const property = fc.asyncProperty(
    fc.constantFrom(...beginnings, ...beginnings.slice(1)),
    fc.array(step, { minLength: 12, maxLength: 24 }),
    async (beginning, more) => run([...beginning, ...more], await openSequence(api)),
  )
  const numRuns = Math.ceil(sequences / atOnce)
  const lanes = Array.from({ length: atOnce }, (_, lane) =>
    fc.assert(property, { numRuns, seed: seed + lane }),
  )
  await Promise.all(lanes)
  const seconds = Math.round((performance.now() - startedAt) / 1000)
  console.log(`seed ${seed}, ${numRuns * atOnce} sequences in ${seconds} s`, met)
  for (const outcome of sequences < 1000 ? usualOutcomes : [...usualOutcomes, ...rareOutcomes]) {
    expect(met[outcome], outcome).toBeGreaterThan(0)
  }
}, 7_200_000)
