import type { PolicyExample } from '@gatehouse/contract/policy-evaluation'
import { sql } from 'kysely'

import type { Db, Tx } from '#platform/database.ts'
import type { PolicyKey } from '#policies/policy.ts'

/** The examples of a policy in the order of their author. */
export async function findExamples(
  db: Db | Tx,
  { organizationId, policyId }: PolicyKey,
): Promise<PolicyExample[]> {
  const rows = await db
    .selectFrom('policy_example')
    .select(['text', 'direction', 'expect'])
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)
    .orderBy('position')
    .execute()
  return rows as PolicyExample[] // the table has no direction 'both'
}

/** Replaces all examples of a policy whose row is locked. */
export async function replaceExamples(tx: Tx, key: PolicyKey, examples: readonly PolicyExample[]) {
  const { organizationId, policyId } = key
  await tx
    .deleteFrom('policy_example')
    .where('organization_id', '=', organizationId)
    .where('policy_id', '=', policyId)
    .execute()
  if (examples.length === 0) return
  const texts = examples.map(({ text }) => text)
  const directions = examples.map(({ direction }) => direction)
  const expectations = examples.map(({ expect }) => expect)
  await sql`
    insert into policy_example (organization_id, policy_id, position, text, direction, expect)
    select ${organizationId}, ${policyId}, position - 1, text, direction, expect
    from unnest(${texts}::text[], ${directions}::policy_direction[],
      ${expectations}::policy_expectation[]) with ordinality
      as example (text, direction, expect, position)`.execute(tx)
}
