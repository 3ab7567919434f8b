import { Role } from '@gatehouse/contract/role'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { mapIdentity, vouchesFor } from './map-identity.ts'
import type { Identity } from './read-identity.ts'
import type { Mapping, SignInProvider } from './read-sign-in.ts'

const ada: Identity = {
  subject: 'ada',
  email: 'ada@example.com',
  isEmailVerified: true,
  name: 'Ada',
  groups: [],
  lacksGroups: false,
  appRoles: [],
  domain: 'example.com',
}
const mapping = (trait: Mapping['trait'], value: string, role: Role = 'viewer'): Mapping => ({
  trait,
  value,
  role,
  organizationId: 'org_1',
})
const map = (changes: Partial<Identity>, ...mappings: Mapping[]) =>
  mapIdentity({ ...ada, ...changes }, mappings)

test('no match, no entry', () => {
  expect(map({})).toEqual({ entries: [], doubt: null })
  expect(map({ groups: ['staff'] }, mapping('group', 'Staff'))).toEqual({
    entries: [],
    doubt: null,
  })
  expect(
    map({}, mapping('domain', 'ple.com'), mapping('domain', 'sub.example.com')).entries,
  ).toEqual([])
})

test('the highest of several wins in each organization, and names its mapping', () => {
  const other = { ...mapping('group', 'staff', 'billing'), organizationId: 'org_2' }
  const { entries } = map(
    { groups: ['staff', 'leads'], appRoles: ['Owner'] },
    mapping('group', 'staff', 'viewer'),
    mapping('group', 'leads', 'policy_editor'),
    mapping('app_role', 'Auditor', 'owner'),
    mapping('domain', 'example.com', 'developer'),
    other,
  )
  expect(entries).toEqual([
    { organizationId: 'org_1', role: 'policy_editor', source: 'group leads' },
    { organizationId: 'org_2', role: 'billing', source: 'group staff' },
  ])
})

test('a group is no app role of the same name, and an app role is no group', () => {
  expect(map({ groups: ['Owner'] }, mapping('app_role', 'Owner', 'owner')).entries).toEqual([])
  expect(map({ appRoles: ['Owner'] }, mapping('group', 'Owner', 'owner')).entries).toEqual([])
})

test.each([mapping('domain', 'example.com'), mapping('email', 'ada@example.com')])(
  'case %#: an address that is not verified gives nothing, and the reason is known',
  (byAddress) => {
    expect(map({}, byAddress).entries).toHaveLength(1)
    expect(map({ isEmailVerified: false }, byAddress)).toEqual({
      entries: [],
      doubt: 'address_unverified',
    })
  },
)

test('an account whose provider has left out groups is refused unless an app role is mapped', () => {
  const mappings = [
    mapping('group', 'staff', 'admin'),
    mapping('domain', 'example.com', 'viewer'),
    mapping('app_role', 'Developer', 'developer'),
  ]
  expect(map({ lacksGroups: true }, ...mappings)).toEqual({ entries: [], doubt: 'groups_missing' })
  expect(map({ lacksGroups: true, appRoles: ['Developer'] }, ...mappings)).toEqual({
    entries: [{ organizationId: 'org_1', role: 'developer', source: 'app_role Developer' }],
    doubt: null,
  })
  expect(map({ lacksGroups: true }, mapping('domain', 'example.com')).doubt).toBeNull()
})

test('nothing is given that a mapping of this account does not give, and a further mapping never takes anything away', () => {
  const traits = fc.constantFrom('group', 'app_role', 'domain', 'email') as fc.Arbitrary<
    Mapping['trait']
  >
  const value = fc.constantFrom('a', 'b', 'example.com', 'ada@example.com')
  const anyMapping = fc.record({
    trait: traits,
    value,
    role: fc.constantFrom(...Role.options),
    organizationId: fc.constantFrom('org_1', 'org_2'),
  })
  const identity = fc.record({
    subject: fc.constant('ada'),
    email: fc.constantFrom('ada@example.com', null),
    isEmailVerified: fc.boolean(),
    name: fc.constant(null),
    groups: fc.array(value),
    lacksGroups: fc.boolean(),
    appRoles: fc.array(value),
    domain: fc.constantFrom('example.com', null),
  })
  fc.assert(
    fc.property(identity, fc.array(anyMapping), anyMapping, (who, mappings, further) => {
      const { entries } = mapIdentity(who, mappings)
      for (const { organizationId, role, source } of entries) {
        expect(
          mappings.some(
            (each) =>
              each.organizationId === organizationId &&
              each.role === role &&
              `${each.trait} ${each.value}` === source,
          ),
        ).toBe(true)
      }
      if (who.lacksGroups) return
      const more = mapIdentity(who, [...mappings, further]).entries
      for (const { organizationId, role } of entries) {
        const now = more.find((each) => each.organizationId === organizationId)
        expect(now && Role.options.indexOf(now.role) <= Role.options.indexOf(role)).toBe(true)
      }
    }),
  )
})

test('a provider vouches where a mapping names it, and everywhere where no mapping names the organization', () => {
  const withMappings = (...mappings: Mapping[]) => ({ mappings }) as unknown as SignInProvider
  const [own, other] = [withMappings(mapping('group', 'staff')), withMappings()]
  const settings = { providers: [own, other], createsMembers: true }
  expect(vouchesFor(settings, own, 'org_1')).toBe(true)
  expect(vouchesFor(settings, other, 'org_1')).toBe(false)
  expect(vouchesFor(settings, other, 'org_2')).toBe(true)
})
