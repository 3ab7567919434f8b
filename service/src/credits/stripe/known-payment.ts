import type { Tx } from '#platform/database.ts'

import { findRecordedPayments, findReference, insertReference } from './report-store.ts'

export type KnownPayment = { reference: string; organizationId: string }

/** A payment that Stripe has reported, or one that the operator has recorded under the same id for one organization. */
export async function findKnownPayment(
  tx: Tx,
  references: readonly (string | null)[],
): Promise<KnownPayment | undefined> {
  const reported = await findReference(tx, references)
  if (reported) return reported
  const [recorded, ...others] = await findRecordedPayments(tx, references)
  const isUnambiguous = others.every(
    ({ organizationId }) => organizationId === recorded?.organizationId,
  )
  if (!recorded || !isUnambiguous) return undefined
  await insertReference(tx, recorded.reference, recorded.organizationId)
  return recorded
}
