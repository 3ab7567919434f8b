import type { Db, Tx } from '#platform/database.ts'

type EpochStep = { organizationId: string; policyId: string; version: number | null; at: Date }

/**
 * Begins the organization's next epoch: from now on this version of the policy is in force, or none. It
 * locks the organization's row, so it comes last in a transaction: epochs then rise in commit order.
 */
export async function enterEpoch(tx: Tx, { organizationId, policyId, version, at }: EpochStep) {
  const { policy_epoch: epoch } = await tx
    .updateTable('organization')
    .set(({ eb }) => ({ policy_epoch: eb('policy_epoch', '+', '1') }))
    .where('id', '=', organizationId)
    .returning('policy_epoch')
    .executeTakeFirstOrThrow()
  await tx
    .insertInto('policy_epoch')
    .values({ organization_id: organizationId, epoch, policy_id: policyId, version, at })
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
