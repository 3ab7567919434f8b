import { type Selectable, sql } from 'kysely'

import type { Labels } from '#access/labels/labels.ts'
import { presentBudget, toBudgetColumn } from '#access/limit-overrides/own-budget.ts'
import type { Project } from '#platform/database-types.ts'
import type { Db, Tx } from '#platform/database.ts'
import { isAfter, type Page } from '#platform/keyset.ts'

export type ProjectRow = Selectable<Project>

type NewProject = {
  id: string
  name: string
  isDefault: boolean
  /** Null: no set does. */
  managedBy: string | null
  createdAt: Date
  allowedModels?: string[] | null
  labels?: Labels
}

export async function insertProject(
  tx: Tx,
  organizationId: string,
  { id, name, isDefault, managedBy, createdAt, allowedModels = null, labels = {} }: NewProject,
): Promise<ProjectRow> {
  return tx
    .insertInto('project')
    .values({
      organization_id: organizationId,
      id,
      name,
      is_default: isDefault,
      managed_by: managedBy,
      created_at: createdAt,
      allowed_models: allowedModels,
      labels: JSON.stringify(labels),
    })
    .returningAll()
    .executeTakeFirstOrThrow()
}

export async function findProject(
  db: Db | Tx,
  organizationId: string,
  id: string,
): Promise<ProjectRow | undefined> {
  return db
    .selectFrom('project')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Reads a project and locks its row until the transaction ends. */
export async function lockProject(
  tx: Tx,
  organizationId: string,
  id: string,
): Promise<ProjectRow | undefined> {
  return tx
    .selectFrom('project')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .forNoKeyUpdate()
    .executeTakeFirst()
}

export async function listProjects(
  db: Db,
  organizationId: string,
  page: Page,
): Promise<ProjectRow[]> {
  return db
    .selectFrom('project')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .where(isAfter(page))
    .orderBy('created_at', page.order)
    .orderBy('id', page.order)
    .limit(page.limit + 1)
    .execute()
}

/** Those of the ids that are active projects of the organization, locked until the transaction ends. */
export async function lockActiveProjects(
  tx: Tx,
  organizationId: string,
  ids: readonly string[],
): Promise<string[]> {
  const rows = await tx
    .selectFrom('project')
    .select('id')
    .where('organization_id', '=', organizationId)
    .where('id', '=', sql<string>`any(${ids}::text[])`)
    .where('status', '=', 'active')
    .orderBy('id')
    .forShare()
    .execute()
  return rows.map(({ id }) => id)
}

export async function countProjects(tx: Tx, organizationId: string): Promise<number> {
  const { count } = await tx
    .selectFrom('project')
    .select(({ fn }) => fn.countAll<string>().as('count'))
    .where('organization_id', '=', organizationId)
    .executeTakeFirstOrThrow()
  return Number(count)
}

export async function saveProject(tx: Tx, organizationId: string, project: ProjectRow) {
  const { id, name, status, archived_at, allowed_models } = project
  const labels = JSON.stringify(project.labels)
  const monthly_budget = toBudgetColumn(presentBudget(project))
  const key_defaults = project.key_defaults && JSON.stringify(project.key_defaults)
  await tx
    .updateTable('project')
    .set({ name, status, archived_at, monthly_budget, key_defaults, allowed_models, labels })
    .where('organization_id', '=', organizationId)
    .where('id', '=', id)
    .execute()
}
