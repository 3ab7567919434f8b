import { z } from 'zod'

import { AdminKeyPermission, type Permission, permissions } from './permission.ts'

/** What a member may do in the whole organization. */
export const Role = z
  .enum([
    'owner',
    'admin',
    'policy_publisher',
    'policy_editor',
    'auditor',
    'billing',
    'developer',
    'viewer',
  ])
  .meta({ id: 'Role' })
export type Role = z.infer<typeof Role>

const editing = [
  'policies.read',
  'policies.write',
  'policy_gateway.read',
  'projects.read',
] as const satisfies readonly Permission[]

/** The permissions of each role. An administrator has those of an owner, but cannot change owners. */
export const rolePermissions: Readonly<Record<Role, readonly Permission[]>> = {
  owner: AdminKeyPermission.options,
  admin: AdminKeyPermission.options,
  policy_publisher: [...editing, 'policies.publish', 'policy_gateway.write'],
  policy_editor: editing,
  auditor: permissions.filter((permission) => permission.endsWith('.read')),
  billing: ['credits.read', 'credits.write', 'projects.read'],
  developer: ['projects.read'],
  viewer: ['policies.read', 'policy_gateway.read', 'projects.read'],
}

/** What each role is for, in one sentence. */
export const roleMeanings: Readonly<Record<Role, string>> = {
  owner: 'May do everything, and alone decides who else is an owner.',
  admin: 'May do everything, but cannot make, change or remove owners.',
  policy_publisher: 'Edits policies and puts them in force, also those of the policy gateway.',
  policy_editor: 'Writes and tries policies; others publish them.',
  auditor: 'Reads everything and changes nothing.',
  billing: 'Sees and manages credits.',
  developer: 'Sees the projects of the organization.',
  viewer: 'Reads policies, the policy gateway and projects.',
}

/** What a member may do in one project, whatever the role in the organization allows. */
export const ProjectRole = z.enum(['project_admin', 'project_member']).meta({ id: 'ProjectRole' })
export type ProjectRole = z.infer<typeof ProjectRole>

/** Whether a role in a project allows what another one allows. */
export const includesProjectRole = (held: ProjectRole | undefined, needed: ProjectRole): boolean =>
  held === 'project_admin' || held === needed
