import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import type { Hold } from './credit-store.ts'
import { lockAccounts } from './lock-store.ts'
import { placeOf } from './reserve-store.ts'

const releaseStatement = (holds: string) => sql<{ organization_id: string; id: string }>`
  with asked as (
    select * from jsonb_to_recordset(${holds}::jsonb) as
      (organization_id text, id text, amount bigint)
  ), gone as (
    delete from credit_hold hold using asked where hold.organization_id = asked.organization_id
      and hold.id = asked.id and hold.amount = asked.amount
    returning hold.organization_id, hold.amount
  ), moved as (
    update credit_account account set held = held - sums.amount
    from (select organization_id, sum(amount) as amount from gone group by organization_id) sums
    where account.organization_id = sums.organization_id
  )
  select organization_id, id from asked join credit_account using (organization_id)`

/**
 * Takes back holds whose calls were never sent, as if they had not been made: there is nothing to charge
 * and nothing to tell. Returns the places that are free now. No id may stand twice.
 */
export const releaseHolds = (db: Db, holds: readonly Hold[]): Promise<Map<string, true>> =>
  transact(db, async (tx) => {
    const organizationIds = holds.map(({ organizationId }) => organizationId)
    await lockAccounts(tx, organizationIds)
    const asked = holds.map(({ organizationId, id, amount }) => ({
      ...{ organization_id: organizationId, id, amount: String(amount) },
    }))
    const { rows } = await releaseStatement(JSON.stringify(asked)).execute(tx)
    return new Map(
      rows.map(({ organization_id, id }) => [
        placeOf({ organizationId: organization_id, id }),
        true,
      ]),
    )
  })
