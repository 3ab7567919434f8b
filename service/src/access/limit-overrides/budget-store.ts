import type { MonthlyBudget } from '@gatehouse/contract/monthly-budget'
import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'

type Page = { organizationId: string; after: string; limit: number }

const activeOnes = {
  project: sql`project where status = 'active'`,
  key: sql`api_key where revoked_at is null`,
}

/** Active projects or keys with a budget, by their ids. */
export async function listBudgets(
  db: Db,
  scope: 'project' | 'key',
  { organizationId, after, limit }: Page,
): Promise<{ subject: string; budget: MonthlyBudget }[]> {
  const { rows } = await sql<{ subject: string; budget: MonthlyBudget }>`
    select id as subject, monthly_budget as budget from ${activeOnes[scope]}
      and organization_id = ${organizationId} and monthly_budget is not null and id > ${after}
    order by id limit ${limit}`.execute(db)
  return rows
}
