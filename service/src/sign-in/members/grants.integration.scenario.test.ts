import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { Role, rolePermissions } from '@gatehouse/contract/role'
import { sizeOf } from '@gatehouse/tools/testing/size-of'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { createOrganization } from '#access/manage-organizations.ts'
import {
  type By,
  given,
  readState,
  type Said,
  type Scene,
  type Step,
  takeStep,
} from '#sign-in/testing/sign-in-steps.ts'
import {
  countActiveOwners,
  everythingIn,
  firstKeyName,
  gainedIn,
  holdingsIn,
  type MemberState,
} from '#testing/members/member-state.ts'
import { createTestApi } from '#testing/test-api.ts'

// Random invitations, changes and sign-ins in one organization. A change gives nothing that its maker does not hold; a sign-in
// gives its own member what the operator's file gives the account, and no other member anything. GRANT_SEQUENCES sets how
// many, GRANT_SEED repeats a run.

const sequences = sizeOf({ usual: 60, long: 10_000, variable: 'GRANT_SEQUENCES' })
const seed = Number(process.env['GRANT_SEED'] ?? Date.now() % 2 ** 31)
const atOnce = 6

const email = fc.constantFrom(...['ada', 'bob', 'cy'].map((name) => `${name}@example.com`))
const account = fc.constantFrom('one', 'two', 'three')
const role = fc.oneof(fc.constantFrom<Role>('owner', 'admin'), fc.constantFrom(...Role.options))
const by: fc.Arbitrary<By> = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom({ key: 'first' }, { key: 'small' }) },
  { weight: 3, arbitrary: account.map((name) => ({ account: name })) },
)
const groups = fc.oneof(
  { weight: 1, arbitrary: fc.constant<string[]>([]) },
  { weight: 4, arbitrary: fc.subarray(['staff', 'leads', 'owners', 'others'], { minLength: 1 }) },
)
const said: fc.Arbitrary<Said> = fc.record({
  account,
  email,
  isVerified: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.boolean()),
  groups,
  lacksGroups: fc.oneof({ weight: 6, arbitrary: fc.constant(false) }, fc.boolean()),
})
const status = fc.constantFrom<'active' | 'suspended'>('active', 'suspended')
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ kind: fc.constant('sign_in'), said }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('compare'), said }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('invite'), by, email, role }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('edit'), by, email, role }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('edit'), by, email, status }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('remove'), by, email }) },
)

const ofOne = (held: string[]) => ({
  account: 'one',
  email: 'ada@example.com',
  isVerified: true,
  groups: held,
  lacksGroups: false,
})
/** Some sequences begin with a member who has lost a role, and whom an administrator suspends. */
const beginnings: readonly (readonly Step[])[] = [
  [],
  [
    { kind: 'sign_in', said: ofOne(['staff']) },
    { kind: 'compare', said: { ...ofOne([]), email: 'old@example.com' } },
    { kind: 'edit', by: { key: 'first' }, email: 'ada@example.com', status: 'suspended' },
  ],
]

const met: Record<string, number> = {}

/** What the operator's file gives an account, by the rule of the specification and not by the code. */
function ceilingOf({ email: address, isVerified, groups: held, lacksGroups }: Said) {
  const roles = given.filter(({ trait, value }) => {
    if (lacksGroups) return false
    return trait === 'group' ? held.includes(value) : isVerified && address === value
  })
  const holdings = roles.flatMap(({ role: each }): readonly string[] =>
    each === 'owner' ? [...rolePermissions.owner, 'owners'] : rolePermissions[each],
  )
  return new Set(holdings)
}

const only = ({ members }: MemberState, ids: readonly string[]): MemberState => ({
  members: Object.fromEntries(Object.entries(members).filter(([id]) => ids.includes(id))),
  keys: {},
  memberships: {},
  projectKeys: {},
})

/** What members have gained who are not the member of this account, and what that member has. */
function gainsOf(scene: Scene, name: string, before: MemberState, after: MemberState) {
  const own = scene.memberOf.get(name) ?? ''
  const isNew = Object.keys(after.members).filter((id) => !before.members[id])
  const ids = Object.keys(after.members).filter((id) => id !== own && !isNew.includes(id))
  const gained = (of: readonly string[]) =>
    gainedIn(holdingsIn(only(before, of), []), holdingsIn(only(after, of), []))
  return { others: gained(ids), own: gained([own, ...isNew]) }
}

/** The one exception: while no owner is active, a key that can make keys makes one. */
function heldBy(actor: By, state: MemberState, { memberOf }: Scene) {
  const holdings = holdingsIn(state, [])
  if ('account' in actor) return holdings.get(memberOf.get(actor.account) ?? '') ?? new Set()
  const isFirst = actor.key === 'first'
  if (isFirst && countActiveOwners(state) === 0) return everythingIn([])
  return holdings.get(isFirst ? firstKeyName : actor.key) ?? new Set()
}

/** Members whom an administrator has suspended. No claim brings them back. */
type Stopped = Set<string>

async function expectSafe(
  each: Step,
  scene: Scene,
  before: Awaited<ReturnType<typeof readState>>,
  stopped: Stopped,
) {
  const memberBefore = 'said' in each ? scene.memberOf.get(each.said.account) : undefined
  const answer = await takeStep(each, scene)
  if (answer === undefined) return before
  met[`${each.kind} ${answer}`] = (met[`${each.kind} ${answer}`] ?? 0) + 1
  const after = await readState(scene)
  const shown = JSON.stringify({ each, answer, before: before.state, after: after.state })
  if ('said' in each) {
    const { account: name } = each.said
    const gains = gainsOf(scene, name, before.state, after.state)
    expect(gains.others, shown).toEqual([])
    const ceiling: ReadonlySet<string> = ceilingOf(each.said)
    expect(
      gains.own.filter((holding) => !ceiling.has(holding)),
      shown,
    ).toEqual([])
    if (answer === 'admitted' && each.kind === 'sign_in') {
      expectOwn(each.said, { scene, before, memberBefore, shown })
    }
    for (const id of stopped) {
      expect(['suspended', undefined], shown).toContain(after.state.members[id]?.status)
    }
  } else {
    const held = heldBy(each.by, before.state, scene)
    const gained = gainedIn(holdingsIn(before.state, []), holdingsIn(after.state, []))
    expect(
      gained.filter((holding) => !held.has(holding)),
      shown,
    ).toEqual([])
    if (each.kind === 'edit' && answer === '200' && each.status) {
      const id = before.idOf.get(each.email)!
      if (each.status === 'suspended') stopped.add(id)
      else stopped.delete(id)
    }
  }
  if (countActiveOwners(before.state) > 0) {
    expect(countActiveOwners(after.state), shown).toBeGreaterThan(0)
  }
  return after
}

type Entered = {
  scene: Scene
  before: Awaited<ReturnType<typeof readState>>
  memberBefore: string | undefined
  shown: string
}

/** An account stays the same member's. A new one becomes the member with its verified address, unless that one has an account. */
function expectOwn(entered: Said, { scene, before, memberBefore, shown }: Entered) {
  const id = scene.memberOf.get(entered.account)!
  if (memberBefore !== undefined && before.state.members[memberBefore]) {
    return expect(id, shown).toBe(memberBefore)
  }
  expect(entered.isVerified, shown).toBe(true)
  const others = [...scene.memberOf].filter(([name]) => name !== entered.account)
  expect(
    others.map(([, member]) => member),
    shown,
  ).not.toContain(id)
  if (before.state.members[id]) expect(before.idOf.get(entered.email), shown).toBe(id)
}

type Api = Awaited<ReturnType<typeof createTestApi>>

async function openScene(api: Api, createsMembers: boolean): Promise<Scene> {
  const { organizationId, adminKey } = await createOrganization('Example Ltd', api.house)
  const permissions = ['members.write', 'projects.read']
  const small = await api.send(createAdminApiKey, {
    credential: adminKey,
    body: { name: 'small', permissions },
  })
  const credentials = new Map([
    ['first', adminKey],
    ['small', small.body.value],
  ])
  return { api, organizationId, createsMembers, credentials, memberOf: new Map() }
}

const usualOutcomes = [
  'sign_in admitted',
  'sign_in no_entry',
  'sign_in not_invited',
  'sign_in groups_missing',
  'sign_in other_account',
  'sign_in member_suspended',
  'compare admitted',
  'compare role_removed',
  'invite 201',
  'invite 403 permission_denied',
  'edit 200',
  'edit 403 permission_denied',
]

test(`${sequences} random sequences: mappings and invitations give what they may, and no more`, async () => {
  console.log(`seed ${seed}`)
  const api = await createTestApi()
  const property = fc.asyncProperty(
    fc.oneof({ weight: 3, arbitrary: fc.constant(true) }, fc.boolean()),
    fc.constantFrom(...beginnings),
    fc.array(step, { minLength: 12, maxLength: 24 }),
    async (createsMembers, beginning, more) => {
      const scene = await openScene(api, createsMembers)
      const stopped: Stopped = new Set()
      let state = await readState(scene)
      for (const each of [...beginning, ...more])
        state = await expectSafe(each, scene, state, stopped)
    },
  )
  const numRuns = Math.ceil(sequences / atOnce)
  const lanes = Array.from({ length: atOnce }, (_, lane) =>
    fc.assert(property, { numRuns, seed: seed + lane }),
  )
  await Promise.all(lanes)
  console.log(`seed ${seed}, ${numRuns * atOnce} sequences`, met)
  for (const outcome of usualOutcomes) expect(met[outcome], outcome).toBeGreaterThan(0)
}, 7_200_000)
