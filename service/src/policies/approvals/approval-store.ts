import { type Role } from '@gatehouse/contract/role'
import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'
import type { PolicyKey } from '#policies/policy.ts'

/** A consent, and what its member may do now. */
export type Approval = {
  readonly id: string
  readonly policyId: string
  readonly revision: number
  readonly memberId: string
  readonly createdAt: Date
  readonly memberRole: Role
  readonly isMemberActive: boolean
}

const columns = sql`policy_approval.id, policy_approval.policy_id as "policyId", policy_approval.revision,
  policy_approval.member_id as "memberId", policy_approval.created_at as "createdAt",
  member.role as "memberRole", member.status = 'active' as "isMemberActive"`

const approvalOf = sql`policy_approval join member
  on member.organization_id = policy_approval.organization_id and member.id = policy_approval.member_id`

/** The newest approvals of a policy. Its row has to be locked, so that none is withdrawn meanwhile. */
export async function findApprovals(
  tx: Tx,
  { organizationId, policyId }: PolicyKey,
): Promise<Approval[]> {
  const { rows } = await sql<Approval>`
    select ${columns} from ${approvalOf}
    where policy_approval.organization_id = ${organizationId}
      and policy_approval.policy_id = ${policyId}
    order by policy_approval.created_at desc, policy_approval.id desc
    limit ${approvalsMax}`.execute(tx)
  return rows
}

/** A policy keeps its newest approvals; older ones are for revisions that are long gone. */
const approvalsMax = 100

/** Returns one approval more than the limit if there are more. */
export async function listApprovals(
  db: Db,
  { organizationId, policyId }: PolicyKey,
  page: Page,
): Promise<Approval[]> {
  const direction = page.order === 'asc' ? sql`asc` : sql`desc`
  const { rows } = await sql<Approval>`
    select * from (
      select ${columns}, policy_approval.created_at from ${approvalOf}
      where policy_approval.organization_id = ${organizationId}
        and policy_approval.policy_id = ${policyId}
    ) approval
    where ${isAfter(page)}
    order by created_at ${direction}, id ${direction} limit ${page.limit + 1}`.execute(db)
  return rows
}

export async function findApprovalPosition(
  db: Db,
  { organizationId, policyId }: PolicyKey,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('policy_approval')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)
    .where('id', '=', id)
    .executeTakeFirst()
}

type NewApproval = Pick<Approval, 'id' | 'revision' | 'memberId' | 'createdAt'>

export async function insertApproval(
  tx: Tx,
  { organizationId, policyId }: PolicyKey,
  { id, revision, memberId, createdAt }: NewApproval,
) {
  await tx
    .insertInto('policy_approval')
    .values({
      organization_id: organizationId,
      id,
      policy_id: policyId,
      revision,
      member_id: memberId,
      created_at: createdAt,
    })
    .execute()
  await sql`
    delete from policy_approval where organization_id = ${organizationId} and policy_id = ${policyId}
      and id not in (
        select id from policy_approval
        where organization_id = ${organizationId} and policy_id = ${policyId}
        order by created_at desc, id desc limit ${approvalsMax}
      )`.execute(tx)
}

export async function deleteApproval(
  tx: Tx,
  { organizationId, policyId }: PolicyKey,
  id: string,
): Promise<void> {
  await tx
    .deleteFrom('policy_approval')
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)
    .where('id', '=', id)
    .execute()
}
