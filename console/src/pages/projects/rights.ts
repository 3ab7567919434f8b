import type { ProjectApiKey } from '@gatehouse/contract/api-key'

import { may, mayChange, projectRoleOf, useMe } from '#session/me.ts'

/**
 * What the person may do in a project, by a permission or by the role in the project (docs/specification/members.md). It decides
 * what is offered; the gateway decides what is done.
 */
export function useProjectRights(projectId: string) {
  const me = useMe()
  const role = projectRoleOf(me, projectId)
  const canWrite = mayChange(me, 'projects.write')
  const isAdmin = canWrite || (!me.read_only && role === 'project_admin')
  const isMember = !me.read_only && role !== null
  const memberId = me.member?.id
  const isOwn = ({ owner }: Pick<ProjectApiKey, 'owner'>) =>
    memberId !== undefined && owner.id === memberId
  return {
    canEditProject: canWrite,
    canEditLimits: isAdmin,
    canManageMembers: isAdmin,
    canSeeMembers: may(me, 'members.read') || role !== null,
    canFindMembers: may(me, 'members.read'),
    canMakeKeys: canWrite || isMember,
    /** Keys of the organization. Without it, every key that the person makes is an own one. */
    canMakeSharedKeys: isAdmin,
    canMakeOwnKeys: isMember,
    canRevoke: (key: ProjectApiKey) => isAdmin || (isMember && isOwn(key)),
    isOwn,
  }
}
