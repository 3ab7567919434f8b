import fc from 'fast-check'
import { expect, test } from 'vitest'

import { readIdentity, readJoinedIdentity } from './read-identity.ts'
import type { ClaimNames } from './read-sign-in.ts'

const names: ClaimNames = {
  groups: 'groups',
  appRoles: 'roles',
  email: 'email',
  emailVerified: 'email_verified',
  name: 'name',
  hostedDomain: null,
}
const read = (claims: object, changed: Partial<ClaimNames> = {}) =>
  readIdentity({ sub: 'ada', ...claims }, { ...names, ...changed })

test('the claims of an account in our words', () => {
  const claims = {
    email: 'Ada@Example.com',
    email_verified: true,
    name: 'Ada Lovelace',
    groups: ['staff', 'platform admins'],
    roles: 'Gatehouse.Owner',
  }
  expect(read(claims)).toEqual({
    subject: 'ada',
    email: 'ada@example.com',
    isEmailVerified: true,
    name: 'Ada Lovelace',
    groups: ['staff', 'platform admins'],
    lacksGroups: false,
    appRoles: ['Gatehouse.Owner'],
    domain: 'example.com',
  })
})

test('an account without a usable sub cannot be told from others', () => {
  expect(readIdentity({}, names)).toBeNull()
  expect(read({ sub: '' })).toBeNull()
  expect(read({ sub: 7 })).toBeNull()
  expect(read({ sub: 'a'.repeat(256) })).toBeNull()
})

test.each([[undefined], [false], ['false'], [null], [0], [{}], ['yes']])(
  'an address whose email_verified is %j is not verified',
  (email_verified) => {
    expect(read({ email: 'ada@example.com', email_verified })?.isEmailVerified).toBe(false)
  },
)

test.each([[true], ['true'], [1], ['1']])(
  'an address whose email_verified is %j is verified',
  (email_verified) => {
    expect(read({ email: 'ada@example.com', email_verified })?.isEmailVerified).toBe(true)
  },
)

test('a provider that vouches for its addresses needs no claim, but an address', () => {
  expect(read({ email: 'ada@example.com' }, { emailVerified: true })?.isEmailVerified).toBe(true)
  expect(read({ email: 'no address' }, { emailVerified: true })?.isEmailVerified).toBe(false)
  expect(read({}, { emailVerified: true })?.isEmailVerified).toBe(false)
})

test('a claim inside others is found by its steps, and one with dots in its name by that name', () => {
  const claims = { realm_access: { roles: ['a'] }, 'https://example.com/roles': ['b'] }
  expect(read(claims, { appRoles: ['realm_access', 'roles'] })?.appRoles).toEqual(['a'])
  expect(read(claims, { appRoles: 'https://example.com/roles' })?.appRoles).toEqual(['b'])
  expect(read(claims, { appRoles: ['constructor', 'name'] })?.appRoles).toEqual([])
})

test.each([
  [{ _claim_names: { groups: 'src1' }, _claim_sources: { src1: { endpoint: 'https://x' } } }],
  [{ hasgroups: true }],
  [{ groups: Array.from({ length: 2001 }, (_, index) => `g${index}`) }],
])('case %#: groups that were left out are noticed', (claims) => {
  expect(read(claims)?.lacksGroups).toBe(true)
})

test('250 groups are no reason to doubt if the provider sends them', () => {
  const groups = Array.from({ length: 250 }, (_, index) => `g${index}`)
  expect(read({ groups })).toMatchObject({ groups, lacksGroups: false })
})

test('where a claim names the organization of an account, the domain of its address does not count', () => {
  const claims = { email: 'ada@example.com' }
  expect(read(claims, { hostedDomain: 'hd' })?.domain).toBeNull()
  expect(read({ ...claims, hd: 'Corp.example' }, { hostedDomain: 'hd' })?.domain).toBe(
    'corp.example',
  )
})

test('a name has no control characters and at most 80 characters', () => {
  expect(read({ name: 'Ada\n\u202eLovelace ' })?.name).toBe('Ada  Lovelace')
  expect(read({ name: '𝒜'.repeat(100) })?.name).toBe('𝒜'.repeat(80))
  expect(read({ name: ' ' })?.name).toBeNull()
})

test('claims of any form are read without a failure', () => {
  const claims = fc.record({
    sub: fc.string({ minLength: 1 }),
    groups: fc.jsonValue(),
    roles: fc.jsonValue(),
    email: fc.jsonValue(),
    email_verified: fc.jsonValue(),
    name: fc.jsonValue(),
    _claim_names: fc.jsonValue(),
  })
  fc.assert(
    fc.property(claims, (value) => {
      const identity = readIdentity(value, names)
      expect(identity?.groups.every((group) => typeof group === 'string') ?? true).toBe(true)
      expect(identity?.email ?? '').toBe(identity?.email?.toLowerCase() ?? '')
    }),
  )
})

test.each([
  ['the page completes the token', {}, { email: 'a@b.example', email_verified: true }, true],
  [
    'both name one address',
    { email: 'a@b.example' },
    { email: 'A@b.example', email_verified: true },
    true,
  ],
  [
    'the page verified another',
    { email: 'a@b.example' },
    { email: 'c@b.example', email_verified: true },
    false,
  ],
  ['the page names no address', { email: 'a@b.example' }, { email_verified: true }, false],
  [
    'the token is enough',
    { email: 'a@b.example', email_verified: true },
    { email: 'c@b.example' },
    true,
  ],
])('an address is verified by who names it: %s', (_, token, page, isEmailVerified) => {
  const joined = readJoinedIdentity({ sub: 'ada', ...token }, page, names)
  expect(joined).toMatchObject({ subject: 'ada', email: 'a@b.example', isEmailVerified })
})
