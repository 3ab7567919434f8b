import type { ProjectStanding } from '#access/projects/standing.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'

/**
 * The member whom a new key of a project belongs to; null: the organization. A key that a caller makes by a role in the
 * project is the caller's own, one that is made by permission is the organization's. Both can ask for the other kind,
 * but a project_member has no other.
 */
export function decideOwner(
  standing: ProjectStanding,
  { member }: Pick<Principal, 'member'>,
  own = standing !== 'permission',
): string | null {
  if (!own && standing === 'project_member') {
    throw permissionDenied(
      'projects.write',
      'A project_member makes keys only for themself; leave `own` out, or ask a project_admin.',
    )
  }
  if (!own) return null
  if (!member) throw invalidOwn('only people have keys of their own; leave it out')
  return member.id
}

/** A person with the permission need not belong to the project. */
export const notInProject = () =>
  invalidOwn('you do not belong to this project; join it first, or leave it out')

const invalidOwn = (reason: string) =>
  new ApiError('invalid_parameter', `'body.own' cannot be true: ${reason}.`, { param: 'body.own' })

/** The member whose keys alone a caller may list and revoke; undefined: all keys of the project. */
export function ownOnly(standing: ProjectStanding, { member }: Pick<Principal, 'member'>) {
  if (standing !== 'project_member') return undefined
  if (!member) throw new Error('a role in a project without its member')
  return member.id
}
