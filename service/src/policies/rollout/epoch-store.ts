import type { Db, Tx } from '#platform/database.ts'

/** What is in force from an epoch on: a version of a policy, or none, or a revision of the gateway's configuration. */
type EpochStep = { organizationId: string; at: Date } & (
  | { policyId: string; version: number | null }
  | { gatewayRevision: number }
)

/**
 * Begins the organization's next epoch. It locks the organization's row, so it comes last in a transaction: epochs then
 * rise in commit order.
 */
export async function enterEpoch(tx: Tx, step: EpochStep) {
  const { organizationId, at } = step
  const { policy_epoch: epoch } = await tx
    .updateTable('organization')
    .set(({ eb }) => ({ policy_epoch: eb('policy_epoch', '+', '1') }))
    .where('id', '=', organizationId)
    .returning('policy_epoch')
    .executeTakeFirstOrThrow()
  await tx
    .insertInto('policy_epoch')
    .values({
      organization_id: organizationId,
      epoch,
      at,
      ...('policyId' in step
        ? { policy_id: step.policyId, version: step.version }
        : { gateway_revision: step.gatewayRevision }),
    })
    .execute()
}

export async function readEpoch(db: Db, organizationId: string): Promise<number> {
  const { policy_epoch: epoch } = await db
    .selectFrom('organization')
    .select('policy_epoch')
    .where('id', '=', organizationId)
    .executeTakeFirstOrThrow()
  return Number(epoch)
}
