import type { ProjectRole } from '@gatehouse/contract/role'
import { sql } from 'kysely'

import type { Membership } from '#access/projects/project-role-store.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

/** A membership with the name and the address of its person. */
export type ProjectMemberRow = {
  project_id: string
  id: string
  email: string
  name: string
  role: ProjectRole
  created_at: Date
}

type Project = { organizationId: string; projectId: string }

const membershipsOf = (db: Db | Tx, { organizationId, projectId }: Project) =>
  db
    .selectFrom('project_member')
    .innerJoin('member', (join) =>
      join
        .onRef('member.organization_id', '=', 'project_member.organization_id')
        .onRef('member.id', '=', 'project_member.member_id'),
    )
    .select([
      'project_member.project_id',
      'member.id',
      'member.email',
      'member.name',
      sql<ProjectRole>`project_member.role`.as('role'),
      'project_member.created_at',
    ])
    .where('project_member.organization_id', '=', organizationId)
    .where('project_member.project_id', '=', projectId)

export async function listProjectMembers(
  db: Db,
  project: Project,
  page: Page,
): Promise<ProjectMemberRow[]> {
  return db
    .selectFrom(membershipsOf(db, project).as('membership'))
    .selectAll()
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .execute()
}

export async function findProjectMember(
  db: Db | Tx,
  { memberId, ...project }: Membership,
): Promise<(ProjectMemberRow & Position) | undefined> {
  return membershipsOf(db, project).where('member.id', '=', memberId).executeTakeFirst()
}

/** The person as a membership shows them, locked until the transaction ends. */
export async function lockPerson(tx: Tx, organizationId: string, id: string) {
  return tx
    .selectFrom('member')
    .select(['id', 'email', 'name'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

/** Counted up to a number, which is all that a limit needs. */
export async function countMemberships(
  tx: Tx,
  organizationId: string,
  by: { projectId: string } | { memberId: string },
  max: number,
): Promise<number> {
  const [column, id] =
    'projectId' in by
      ? (['project_id', by.projectId] as const)
      : (['member_id', by.memberId] as const)
  const rows = await tx
    .selectFrom('project_member')
    .select(column)
    .where('organization_id', '=', organizationId)
    .where(column, '=', id)
    .limit(max)
    .execute()
  return rows.length
}

/** Takes a member into a project, or gives another role there. The time of joining stays. */
export async function saveProjectMember(
  tx: Tx,
  { organizationId, projectId, memberId }: Membership,
  { role, now }: { role: ProjectRole; now: Date },
) {
  await tx
    .insertInto('project_member')
    .values({
      organization_id: organizationId,
      project_id: projectId,
      member_id: memberId,
      role,
      created_at: now,
    })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'project_id', 'member_id']).doUpdateSet({ role }),
    )
    .execute()
}

export async function removeProjectMember(
  tx: Tx,
  { organizationId, projectId, memberId }: Membership,
) {
  await tx
    .deleteFrom('project_member')
    .where('organization_id', '=', organizationId)
    .where('project_id', '=', projectId)
    .where('member_id', '=', memberId)
    .execute()
}
