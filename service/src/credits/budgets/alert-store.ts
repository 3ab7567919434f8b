import { sql } from 'kysely'

import { eventColumns, insertEventsFrom, toEventRecord } from '#audit/event-store.ts'
import type { Event } from '#audit/event.ts'
import { type Db, type NamedStatement, runNamed, type Tx } from '#platform/database.ts'

/** One alert of a budget in a month. */
export type BudgetAlert = {
  organizationId: string
  scope: 'organization' | 'project' | 'key'
  subject: string
  /** Its first day. */
  month: string
  budget: number
  percent: number
}

/** The event is written with the alert, and only if no process has written the alert before. */
const alertStatement: NamedStatement = {
  name: 'write_budget_alert',
  text: `
  with new_alert as (
    insert into budget_alert (organization_id, scope, subject, month, budget, percent)
    values ($1, $2, $3, $4, $5, $6) on conflict do nothing returning organization_id
  ), records as (
    select record.* from jsonb_to_recordset($7::jsonb) as record (organization_id text, ${eventColumns})
    join new_alert using (organization_id)
  ), new_event as (
    ${insertEventsFrom('records')}
  )
  select organization_id from new_alert`,
}

/** Returns whether the alert is new. */
export async function writeBudgetAlert(db: Db, alert: BudgetAlert, event: Event): Promise<boolean> {
  const { organizationId, scope, subject, month, budget, percent } = alert
  const record = JSON.stringify([toEventRecord(event)])
  const values = [organizationId, scope, subject, month, budget, percent, record]
  return (await runNamed(db, alertStatement, values)).length > 0
}

/** Removes alerts of past months. Returns how many there were. */
export async function sweepBudgetAlerts(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from budget_alert where ctid = any (array(
      select ctid from budget_alert where month < ${before}::date limit ${limit} for update skip locked))`.execute(
    tx,
  )
  return Number(numAffectedRows ?? 0)
}
