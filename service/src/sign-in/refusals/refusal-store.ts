import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'

/** The refused sign-ins of one minute. Those without an organization are under the name of the operator. */
export type RefusedMinute = { organizationId: string; minute: Date }

/** Adds refusals to a minute; returns how many it has now. */
export async function addRefusals(
  db: Db | Tx,
  { organizationId, minute }: RefusedMinute,
  refused: number,
): Promise<number> {
  const row = await db
    .insertInto('sign_in_refusal')
    .values({ organization_id: organizationId, minute, refused })
    .onConflict((conflict) =>
      conflict.columns(['organization_id', 'minute']).doUpdateSet({
        refused: sql`sign_in_refusal.refused + ${refused}`,
      }),
    )
    .returning('refused')
    .executeTakeFirstOrThrow()
  return Number(row.refused)
}

/** Removes minutes that are over; returns them with how many each had. */
export async function takeMinutes(tx: Tx, before: Date, rowsMax: number) {
  const rows = await tx
    .deleteFrom('sign_in_refusal')
    .where(({ eb, selectFrom, refTuple }) =>
      eb(
        refTuple('organization_id', 'minute'),
        'in',
        selectFrom('sign_in_refusal as old')
          .select(['old.organization_id', 'old.minute'])
          .where('old.minute', '<', before)
          .orderBy('old.minute')
          .limit(rowsMax)
          .forUpdate()
          .skipLocked()
          .$asTuple('organization_id', 'minute'),
      ),
    )
    .returning(['organization_id', 'minute', 'refused'])
    .execute()
  return rows.map((row) => ({
    organizationId: row.organization_id,
    minute: row.minute,
    refused: Number(row.refused),
  }))
}
