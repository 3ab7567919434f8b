import { sql } from 'kysely'

import type { Tx } from '#platform/database.ts'

export type BudgetSubject = {
  organizationId: string
  scope: 'organization' | 'project' | 'key'
  subject: string
}

/**
 * For a subject that gets its first quota or budget: what it has used since a day, by the sums for charts. Days that
 * are counted already stay. The charts have the day on which a call ended, and only calls that were sent to a model.
 */
export async function seedQuotaUsage(
  tx: Tx,
  { organizationId, scope, subject }: BudgetSubject,
  sinceDay: string,
): Promise<void> {
  await sql`
    insert into quota_usage (organization_id, scope, subject, window_start, requests, tokens, credits)
    select organization_id, ${scope}::quota_scope, ${subject}, day, sum(requests),
      sum(input_tokens + output_tokens), sum(credits)
    from usage_day
    where organization_id = ${organizationId} and day >= ${sinceDay}::date
      and case ${scope} when 'project' then project_id = ${subject} when 'key' then key_id = ${subject} else true end
    group by organization_id, day order by day
    on conflict do nothing`.execute(tx)
}
