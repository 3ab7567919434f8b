import { Role } from '@gatehouse/contract/role'
import fc from 'fast-check'
import { expect, test } from 'vitest'

import { type JudgedAccount, judgeAccount, type KnownMember } from './judge-account.ts'

const entry = { organizationId: 'org_1', role: 'developer', source: 'group staff' } as const
const account: JudgedAccount = { entry, doubt: null, isEmailVerified: true }
const standing = { role: 'developer', source: 'group staff', status: 'active' } as const
const known: KnownMember = { standing, hasLostRole: false, isLastOwner: false }

test('a newcomer needs a mapping, a file that creates members and a verified address', () => {
  const judge = (changes: Partial<JudgedAccount>, creates = true) =>
    judgeAccount({ ...account, ...changes }, null, creates)
  expect(judge({}).after).toEqual(standing)
  expect(judge({ entry: null }).refusal).toBe('no_entry')
  expect(judge({ entry: null, doubt: 'groups_missing' }).refusal).toBe('groups_missing')
  expect(judge({}, false).refusal).toBe('not_invited')
  expect(judge({ isEmailVerified: false }).refusal).toBe('address_unverified')
})

test('a role from a mapping follows the claims, in both directions', () => {
  expect(judgeAccount(account, known, false)).toEqual({ refusal: null, after: null, isKept: false })
  const higher = { ...account, entry: { ...entry, role: 'admin' as const, source: 'group leads' } }
  expect(judgeAccount(higher, known, false).after).toEqual({
    role: 'admin',
    source: 'group leads',
    status: 'active',
  })
  expect(judgeAccount({ ...account, entry: null }, known, true)).toEqual({
    refusal: 'role_removed',
    after: { ...standing, status: 'suspended' },
    isKept: false,
  })
})

test('claims in doubt refuse, and take nothing away', () => {
  const doubtful = { ...account, entry: null, doubt: 'groups_missing' } as const
  expect(judgeAccount(doubtful, known, true)).toEqual({
    refusal: 'groups_missing',
    after: null,
    isKept: false,
  })
})

test('a role that was assigned is not changed, and needs no mapping', () => {
  const assigned = { ...known, standing: { ...standing, source: 'assigned' } }
  expect(judgeAccount(account, assigned, true).after).toBeNull()
  expect(judgeAccount({ ...account, entry: null }, assigned, true).refusal).toBeNull()
  const invited = { ...assigned, standing: { ...assigned.standing, status: 'invited' as const } }
  expect(judgeAccount({ ...account, entry: null }, invited, false).after).toEqual({
    ...standing,
    source: 'assigned',
  })
})

test('a member whom the claims have suspended comes back with them, one whom an administrator has suspended does not', () => {
  const suspended = { ...known, standing: { ...standing, status: 'suspended' as const } }
  expect(judgeAccount(account, suspended, true)).toMatchObject({
    refusal: 'member_suspended',
    after: null,
  })
  const lost = { ...suspended, hasLostRole: true }
  expect(judgeAccount(account, lost, true)).toMatchObject({ refusal: null, after: standing })
  expect(judgeAccount({ ...account, entry: null }, lost, true).refusal).toBe('role_removed')
})

test('the last owner is neither demoted nor suspended', () => {
  const owner = { ...known, standing: { ...standing, role: 'owner' as const }, isLastOwner: true }
  const kept = { refusal: null, after: null, isKept: true }
  expect(judgeAccount(account, owner, true)).toEqual(kept)
  expect(judgeAccount({ ...account, entry: null }, owner, true)).toEqual(kept)
  expect(judgeAccount(account, { ...owner, isLastOwner: false }, true).after?.role).toBe(
    'developer',
  )
})

test('nothing is given that no mapping gives, and only what was given by a mapping is taken away', () => {
  const roles = fc.constantFrom(...Role.options)
  const anyAccount = fc.record({
    entry: fc.option(
      fc.record({
        organizationId: fc.constant('org_1'),
        role: roles,
        source: fc.constant('group g'),
      }),
    ),
    doubt: fc.constantFrom(null, 'groups_missing' as const, 'address_unverified' as const),
    isEmailVerified: fc.boolean(),
  })
  const anyMember = fc.record({
    standing: fc.record({
      role: roles,
      source: fc.constantFrom('assigned', 'group g'),
      status: fc.constantFrom('invited' as const, 'active' as const, 'suspended' as const),
    }),
    hasLostRole: fc.boolean(),
    isLastOwner: fc.boolean(),
  })
  fc.assert(
    fc.property(anyAccount, fc.option(anyMember), fc.boolean(), (who, member, creates) => {
      const { refusal, after } = judgeAccount(who, member, creates)
      if (refusal !== null) expect(after?.status ?? 'suspended').toBe('suspended')
      if (after && after.role !== member?.standing.role) expect(after.role).toBe(who.entry?.role)
      if (member?.standing.source === 'assigned' && !member.hasLostRole)
        expect(after?.role ?? member.standing.role).toBe(member.standing.role)
      if (member?.standing.status === 'suspended' && !member.hasLostRole)
        expect(refusal).toBe('member_suspended')
      if (after?.status === 'active' && !member) expect(who.isEmailVerified && creates).toBe(true)
    }),
  )
})
