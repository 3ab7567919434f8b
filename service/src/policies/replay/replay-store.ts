import type { PolicyContent } from '@gatehouse/contract/policy'
import { sql } from 'kysely'

import type { Db } from '#platform/database.ts'
import { firstUuidAt, momentOfUuid } from '#platform/id.ts'
import type { PolicyKey } from '#policies/policy.ts'

import type { RecordedEvent } from './recorded-call.ts'

/** Calls that no policy judged are passed over, so a page may have few. */
const rowsPerPage = 1000
const newest = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
const oldest = '00000000-0000-0000-0000-000000000000'

/**
 * The events of an organization's calls that policies judged, newest first, in pages that are read on demand. What
 * monitoring has found comes before its call, also where both are of the same millisecond.
 */
export async function* readJudgedCalls(
  db: Db,
  organizationId: string,
): AsyncGenerator<RecordedEvent[]> {
  for (let before = newest; before !== oldest;) {
    const from = await findPageStart(db, organizationId, before)
    const { rows } = await sql<RecordedEvent>`
      select id, at, header from event
      where organization_id = ${organizationId} and id >= ${from}::uuid and id < ${before}::uuid
        and kind = 'enforcement' and (header ? 'scores' or header->>'phase' = 'monitoring')
      order by at desc, header->>'phase' = 'monitoring' desc, id desc`.execute(db)
    yield rows
    before = from
  }
}

/** Where a page begins: with the first event of a millisecond, so that none is divided. */
async function findPageStart(db: Db, organizationId: string, before: string): Promise<string> {
  const { rows } = await sql<{ id: string }>`
    select id from event where organization_id = ${organizationId} and id < ${before}::uuid
    order by id desc offset ${rowsPerPage - 1} limit 1`.execute(db)
  const [last] = rows
  if (!last) return oldest
  const moment = momentOfUuid(last.id)
  return moment ? firstUuidAt(moment) : last.id
}

type InForce = PolicyContent & { version: number }
type Step = { epoch: number; version: InForce | null }

const stepsMax = 1000

/** Which version was in force in which epoch. What is older than the last steps, or is not kept, is not known. */
export async function readVersionHistory(
  db: Db,
  { organizationId, policyId }: PolicyKey,
): Promise<(epoch: number) => InForce | null> {
  const { rows } = await sql<{ epoch: number } & InForce>`
    select step.epoch::float8 as "epoch", v.version, v.rule, v.direction, v.mode, v.scope,
      v.project_ids, v.match_threshold_basis_points
    from (
      select epoch, version from policy_epoch
      where organization_id = ${organizationId} and policy_id = ${policyId}
      order by epoch desc limit ${stepsMax}
    ) step
    left join policy_version v on v.organization_id = ${organizationId}
      and v.policy_id = ${policyId} and v.version = step.version
    order by step.epoch desc`.execute(db)
  const steps: Step[] = rows.map(({ epoch, ...version }) => ({
    epoch,
    version: (version.version as number | null) === null ? null : version,
  }))
  return (epoch) => steps.find((step) => step.epoch <= epoch)?.version ?? null
}
