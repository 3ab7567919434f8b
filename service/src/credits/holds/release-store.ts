import { sql } from 'kysely'

import { callKey, type Hold } from '#credits/settlement.ts'
import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { accountsWithoutReleasedHolds, lockAccounts } from './account-store.ts'

const releaseStatement = (holds: string) => sql<{ organization_id: string; id: string }>`
  with requested_releases as (
    select * from jsonb_to_recordset(${holds}::jsonb) as
      (organization_id text, id text, amount bigint)
  ), released_holds as (
    delete from credit_hold hold using requested_releases requested
    where hold.organization_id = requested.organization_id
      and hold.id = requested.id and hold.amount = requested.amount
    returning hold.organization_id, hold.amount
  ), ${accountsWithoutReleasedHolds}
  select organization_id, id from requested_releases join credit_account using (organization_id)`

/**
 * Removes holds whose calls were never sent, without a ledger entry or an event. Returns the `callKey`s of
 * calls that have no hold any more; none where there is no account. No call may be in `holds` twice.
 */
export const releaseHolds = (db: Db, holds: readonly Hold[]): Promise<Map<string, true>> =>
  transact(db, async (tx) => {
    const organizationIds = holds.map(({ organizationId }) => organizationId)
    await lockAccounts(tx, organizationIds)
    const records = holds.map(({ organizationId, id, amount }) => ({
      organization_id: organizationId,
      id,
      amount: String(amount),
    }))
    const { rows } = await releaseStatement(JSON.stringify(records)).execute(tx)
    return new Map(
      rows.map(({ organization_id: organizationId, id }) => [
        callKey({ organizationId, id }),
        true,
      ]),
    )
  })
