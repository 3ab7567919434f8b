import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

/** The tables of objects that a set can manage. */
export type ManagedTable =
  | 'project'
  | 'api_key'
  | 'policy'
  | 'gateway_config'
  | 'export_sink'
  | 'guardrail'
  | 'member'

/** The caller has locked the row. An organization has one configuration, which is found by the organization alone. */
export async function setManagedBy(
  tx: Tx,
  { table, organizationId, id }: { table: ManagedTable; organizationId: string; id: string },
  managedBy: string | null,
) {
  const isIt = table === 'gateway_config' ? sql`true` : sql`id = ${id}`
  const { numAffectedRows } = await sql`
    update ${sql.table(table)} set managed_by = ${managedBy}
    where organization_id = ${organizationId} and ${isIt}`.execute(tx)
  if (numAffectedRows !== 1n) throw new Error('a locked object is gone')
}
