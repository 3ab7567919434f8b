import type { ProjectRole } from '@gatehouse/contract/role'

import type { Tx } from '#platform/database.ts'

export type Membership = { organizationId: string; projectId: string; memberId: string }

/**
 * What a member is in a project now, and until the transaction ends: a removal waits for it. undefined for one who does
 * not belong to the project, or is not active.
 */
export async function holdProjectRole(
  tx: Tx,
  { organizationId, projectId, memberId }: Membership,
): Promise<ProjectRole | undefined> {
  const row = await tx
    .selectFrom('project_member')
    .innerJoin('member', (join) =>
      join
        .onRef('member.organization_id', '=', 'project_member.organization_id')
        .onRef('member.id', '=', 'project_member.member_id'),
    )
    .select('project_member.role')
    .where('project_member.organization_id', '=', organizationId)
    .where('project_member.project_id', '=', projectId)
    .where('project_member.member_id', '=', memberId)
    .where('member.status', '=', 'active')
    .forShare('project_member')
    .executeTakeFirst()
  return row?.role as ProjectRole | undefined
}
