import { expect, test } from 'vitest'

import type { ProjectStanding } from '#access/projects/standing.ts'

import { decideOwner, ownOnly } from './key-owner.ts'

const ada = {
  id: 'mem_1',
  email: 'ada@example.com',
  name: 'Ada',
  role: 'developer' as const,
  projectRoles: new Map(),
}

function found(standing: ProjectStanding, own: boolean | undefined, isPerson: boolean) {
  try {
    return decideOwner(standing, { member: isPerson ? ada : null }, own)
  } catch (error) {
    return (error as { status: number }).status
  }
}

test.each([
  // standing, own, whether a person calls, whose the key is
  ['permission', undefined, true, null],
  ['permission', false, true, null],
  ['permission', true, true, 'mem_1'],
  ['permission', undefined, false, null],
  ['permission', true, false, 422],
  ['project_admin', undefined, true, 'mem_1'],
  ['project_admin', true, true, 'mem_1'],
  ['project_admin', false, true, null],
  ['project_member', undefined, true, 'mem_1'],
  ['project_member', true, true, 'mem_1'],
  ['project_member', false, true, 403],
] as const)(
  'by %s, own: %s, a person: %s: the key belongs to %s',
  (standing, own, isPerson, owner) => {
    expect(found(standing, own, isPerson)).toBe(owner)
  },
)

test('only a project_member is shown nothing but own keys', () => {
  expect(ownOnly('permission', { member: ada })).toBeUndefined()
  expect(ownOnly('project_admin', { member: ada })).toBeUndefined()
  expect(ownOnly('project_member', { member: ada })).toBe('mem_1')
})
