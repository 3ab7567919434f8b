import type { Endpoint } from '@gatehouse/contract/endpoint'
import type { Permission } from '@gatehouse/contract/permission'
import { archiveProject, retrieveProject } from '@gatehouse/contract/project'
import type { ProjectRole } from '@gatehouse/contract/role'
import { expect, test } from 'vitest'

import type { Principal } from '#http/principal.ts'

import { requireStanding } from './standing.ts'

const taking = (orProjectRole: ProjectRole): Endpoint => ({
  ...retrieveProject,
  permission: 'projects.write',
  orProjectRole,
})

type Caller = Pick<Principal, 'permissions' | 'member'>

const callerWith = (
  permissions: Permission[],
  roles: Record<string, ProjectRole> | null,
): Caller => ({
  permissions: new Set(permissions),
  member: roles && {
    id: 'mem_1',
    email: 'ada@example.com',
    name: 'Ada',
    role: 'developer',
    projectRoles: new Map(Object.entries(roles)),
  },
})

/** The standing, or the status of the refusal. */
function found(endpoint: Endpoint, caller: Caller, projectId = 'proj_1') {
  try {
    return requireStanding(endpoint, caller, projectId)
  } catch (error) {
    return (error as { status: number }).status
  }
}

test.each([
  ['project_member', 'project_member', 'project_member'],
  ['project_member', 'project_admin', 'project_admin'],
  ['project_admin', 'project_member', 403],
  ['project_admin', 'project_admin', 'project_admin'],
] as const)('an endpoint for a %s lets a %s pass as: %s', (needed, held, as) => {
  expect(found(taking(needed), callerWith([], { proj_1: held }))).toBe(as)
})

test('the permission counts for more than the role', () => {
  const caller = callerWith(['projects.write'], { proj_1: 'project_member' })
  expect(found(taking('project_member'), caller)).toBe('permission')
  expect(found(taking('project_admin'), caller)).toBe('permission')
})

test('403: a role in another project, a key, and a path without a project', () => {
  const endpoint = taking('project_member')
  expect(found(endpoint, callerWith([], { proj_2: 'project_admin' }))).toBe(403)
  expect(found(endpoint, callerWith([], null))).toBe(403)
  const caller = callerWith([], { proj_1: 'project_admin' })
  expect(found(endpoint, caller, '')).toBe(403)
  expect(found(endpoint, caller, '__proto__')).toBe(403)
  expect(() => requireStanding(endpoint, caller, undefined)).toThrow('projects.write')
})

test('403: an endpoint that takes no role in the project', () => {
  const caller = callerWith(['projects.read'], { proj_1: 'project_admin' })
  expect(found(archiveProject, caller)).toBe(403)
})

test('the refusal of a person names the permission and the role', () => {
  expect(() => requireStanding(taking('project_admin'), callerWith([], {}), 'proj_1')).toThrow(
    'You lack the permission projects.write, and are not a project_admin of this project.',
  )
})
