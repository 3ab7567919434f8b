import type { MemberStatus } from '@gatehouse/contract/members/member'
import type { ProjectRole, Role } from '@gatehouse/contract/role'
import type { Selectable } from 'kysely'

import type { Member } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

export type MemberRow = Omit<Selectable<Member>, 'role' | 'status'> & {
  role: Role
  status: MemberStatus
}

export async function insertMember(tx: Tx, member: MemberRow) {
  await tx.insertInto('member').values(member).execute()
}

export async function findMember(
  db: Db | Tx,
  organizationId: string,
  id: string,
): Promise<MemberRow | undefined> {
  return db
    .selectFrom('member')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .$castTo<MemberRow>()
    .executeTakeFirst()
}

/** `email` is in lower case. */
export async function findMemberByEmail(
  db: Db | Tx,
  organizationId: string,
  email: string,
): Promise<MemberRow | undefined> {
  return db
    .selectFrom('member')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('email', '=', email)
    .$castTo<MemberRow>()
    .executeTakeFirst()
}

/** Undefined: of any. */
export type MemberFilter = {
  status?: MemberStatus | undefined
  role?: Role | undefined
  email?: string | undefined
}

/** Returns one member more than the limit if there are more. */
export async function listMemberRows(
  db: Db,
  organizationId: string,
  { status, role, email }: MemberFilter,
  page: Page,
): Promise<MemberRow[]> {
  let query = db.selectFrom('member').selectAll().where('organization_id', '=', organizationId)
  if (status !== undefined) query = query.where('status', '=', status)
  if (role !== undefined) query = query.where('role', '=', role)
  if (email !== undefined) query = query.where('email', '=', email)
  return query
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .$castTo<MemberRow>()
    .execute()
}

export async function findMemberPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('member')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** How many members there are, and how many of them are active owners. The organization has to be locked, so that it stays true. */
export async function countMembers(
  tx: Tx,
  organizationId: string,
): Promise<{ members: number; activeOwners: number }> {
  const counted = await tx
    .selectFrom('member')
    .select(({ fn }) => [
      fn.countAll<string>().as('members'),
      fn
        .countAll<string>()
        .filterWhere('role', '=', 'owner')
        .filterWhere('status', '=', 'active')
        .as('owners'),
    ])
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
  return { members: Number(counted.members), activeOwners: Number(counted.owners) }
}

/** Saves what an administrator can change. When the member was last seen is not part of it. */
export async function updateMemberRow(tx: Tx, member: MemberRow) {
  const { organization_id, id, name, role, role_source, status } = member
  await tx
    .updateTable('member')
    .set({ name, role, role_source, status })
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .execute()
}

/** From now on an administrator has decided about the status of a member, which no claims of an account change back. */
export async function forgetLostRoles(tx: Tx, { organization_id, id }: MemberRow) {
  await tx
    .updateTable('member_identity')
    .set({ lost_at: null })
    .where('organization_id', '=', organization_id)
    .where('member_id', '=', id)
    .where('lost_at', 'is not', null)
    .execute()
}

/** Memberships of projects end with the row. */
export async function deleteMemberRow(tx: Tx, { organization_id, id }: MemberRow) {
  await tx
    .deleteFrom('member')
    .where('organization_id', '=', organization_id)
    .where('id', '=', id)
    .execute()
}

type OwnProject = { id: string; name: string; role: ProjectRole }

/** The active projects that a member belongs to; one more than the limit if there are more. */
export async function listOwnProjects(
  db: Db,
  { organization_id, id }: MemberRow,
  limit: number,
): Promise<OwnProject[]> {
  return db
    .selectFrom('project_member')
    .innerJoin('project', (join) =>
      join
        .onRef('project.organization_id', '=', 'project_member.organization_id')
        .onRef('project.id', '=', 'project_member.project_id'),
    )
    .select(['project.id', 'project.name', 'project_member.role'])
    .where('project_member.organization_id', '=', organization_id)
    .where('project_member.member_id', '=', id)
    .where('project.status', '=', 'active')
    .orderBy('project.created_at')
    .orderBy('project.id')
    .limit(limit + 1)
    .$castTo<OwnProject>()
    .execute()
}
