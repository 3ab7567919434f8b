import { GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'

import type { Db, Tx } from '#platform/database.ts'

import { hashConfig, type SavedConfig } from './saved-config.ts'

export async function findConfig(
  db: Db | Tx,
  organizationId: string,
): Promise<SavedConfig | undefined> {
  const row = await db
    .selectFrom('gateway_config')
    .selectAll()
    .where('organization_id', '=', organizationId)
    .executeTakeFirst()
  return (
    row && {
      revision: row.revision,
      samplingRevision: row.sampling_revision,
      samplingKey: row.sampling_key,
      // Completes what an earlier release did not know.
      config: GivenGatewayConfig.parse(row.config),
      rolledBackUntil: row.rolled_back_until,
      managedBy: row.managed_by,
      createdAt: row.created_at,
      updatedAt: row.updated_at,
    }
  )
}

/** The revision that is saved; 0: none was. */
export async function findRevision(db: Db | Tx, organizationId: string): Promise<number> {
  const row = await db
    .selectFrom('gateway_config')
    .select('revision')
    .where('organization_id', '=', organizationId)
    .executeTakeFirst()
  return row?.revision ?? 0
}

/** Puts a revision in the place of the one before, which keeps its set. The organization is locked; the revision is a second guard. */
export async function putConfig(tx: Tx, organizationId: string, saved: SavedConfig) {
  const values = {
    revision: saved.revision,
    sampling_revision: saved.samplingRevision,
    config: JSON.stringify(saved.config),
    sha256: hashConfig(saved.config),
    rolled_back_until: saved.rolledBackUntil,
    updated_at: saved.updatedAt,
  }
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('gateway_config')
    .values({
      organization_id: organizationId,
      sampling_key: saved.samplingKey,
      managed_by: saved.managedBy,
      created_at: saved.createdAt,
      ...values,
    })
    .onConflict((conflict) =>
      conflict
        .column('organization_id')
        .doUpdateSet(values)
        .where('gateway_config.revision', '=', saved.revision - 1),
    )
    .executeTakeFirst()
  if (numInsertedOrUpdatedRows !== 1n)
    throw new Error('a locked configuration changed its revision')
}

/** It is in force again at that time. */
export async function setRolledBack(tx: Tx, organizationId: string, until: Date) {
  await tx
    .updateTable('gateway_config')
    .set({ rolled_back_until: until })
    .where('organization_id', '=', organizationId)
    .execute()
}
