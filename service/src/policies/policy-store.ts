import type { PolicyContent } from '@gatehouse/contract/policy'
import { type Selectable, sql } from 'kysely'

import type { Policy as PolicyTable } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page, type Position } from '#platform/keyset.ts'

import type { Policy } from './policy.ts'

type Row = Selectable<PolicyTable>

/** The columns of a list. Rules are left out: they can be long, and no list shows them. */
const summaryColumns = [
  ...(['id', 'name', 'description', 'state', 'revision', 'current_version'] as const),
  ...(['published_sha256', 'draft_sha256', 'managed_by'] as const),
  ...(['created_at', 'updated_at'] as const),
] as const
export type PolicySummaryRow = Pick<Row, (typeof summaryColumns)[number]>

const columns = [
  ...summaryColumns,
  ...(['rule', 'direction', 'mode', 'scope', 'project_ids'] as const),
  ...(['match_threshold_basis_points', 'base_version', 'drafted_by'] as const),
] as const

export async function insertPolicy(tx: Tx, organizationId: string, policy: Policy) {
  await tx
    .insertInto('policy')
    .values({ ...policy, organization_id: organizationId })
    .execute()
}

export async function findPolicy(
  db: Db | Tx,
  organizationId: string,
  id: string,
): Promise<Policy | undefined> {
  return selectPolicy(db, organizationId, id).executeTakeFirst()
}

/** Reads a policy and locks its row until the transaction ends. */
export async function lockPolicy(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<Policy | undefined> {
  return selectPolicy(tx, organizationId, id).forNoKeyUpdate().executeTakeFirst()
}

const selectPolicy = (db: Db | Tx, organizationId: string, id: string) =>
  db
    .selectFrom('policy')
    .select(columns)
    .$narrowType<{ direction: PolicyContent['direction'] }>() // that of a match may also be another
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('deleted_at', 'is', null)

/** The position in the list. A deleted policy keeps its position, so its id stays a valid cursor. */
export async function findPolicyPosition(
  db: Db,
  organizationId: string,
  id: string,
): Promise<Position | undefined> {
  return db
    .selectFrom('policy')
    .select(['id', 'created_at'])
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

export async function listPolicies(
  db: Db,
  organizationId: string,
  page: Page,
): Promise<PolicySummaryRow[]> {
  return db
    .selectFrom('policy')
    .select(summaryColumns)
    .where('organization_id', '=', organizationId)
    .where('deleted_at', 'is', null)
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .execute()
}

/** Counts one more policy; false when the organization has `max` of them. */
export async function addToPolicyCount(
  tx: Tx,
  organizationId: string,
  max: number,
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('organization')
    .set(({ eb }) => ({ policy_count: eb('policy_count', '+', 1) }))
    .where('id', '=', organizationId)
    .where('policy_count', '<', max)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export async function subtractFromPolicyCount(tx: Tx, organizationId: string) {
  await tx
    .updateTable('organization')
    .set(({ eb }) => ({ policy_count: eb('policy_count', '-', 1) }))
    .where('id', '=', organizationId)
    .execute()
}

/** Saves an edit of `revision`. The row is locked already; the revision in the WHERE is a second guard. */
export async function savePolicy(
  tx: Tx,
  organizationId: string,
  { id, created_at: _, ...edited }: Policy,
  revision: number,
) {
  const { numUpdatedRows } = await tx
    .updateTable('policy')
    .set(edited)
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .where('revision', '=', revision)
    .executeTakeFirst()
  if (numUpdatedRows !== 1n) throw new Error('a locked policy changed its revision')
}

export async function markPolicyDeleted(
  tx: Tx,
  organizationId: string,
  policy: Policy,
  deletedAt: Date,
) {
  const { numUpdatedRows } = await tx
    .updateTable('policy')
    .set({ deleted_at: deletedAt })
    .where('organization_id', '=', organizationId)
    .where('id', '=', policy.id)
    .where('revision', '=', policy.revision)
    .executeTakeFirst()
  if (numUpdatedRows !== 1n) throw new Error('a locked policy changed its revision')
}

export type JudgedScope = Pick<Policy, 'scope' | 'project_ids' | 'direction'>

/** Where the enforcing policies in plain language without a gate are in force, except for the given one. */
export async function findOtherJudged(
  tx: Tx,
  { organizationId, id }: { organizationId: string; id: string },
): Promise<JudgedScope[]> {
  const { rows } = await sql<JudgedScope>`
    select v.scope, v.project_ids, v.direction
    from policy p
    join policy_version v on v.organization_id = p.organization_id and v.policy_id = p.id
      and v.version = p.current_version
    where p.organization_id = ${organizationId} and p.id <> ${id} and p.state = 'enforcing'
      and p.deleted_at is null and v.scope <> 'unattached' and v.rule !~ '^\\s*(cel|when):'`.execute(
    tx,
  )
  return rows
}
