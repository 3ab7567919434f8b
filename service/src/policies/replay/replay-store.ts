import type { PolicyContent } from '@gatehouse/contract/policy'
import { sql } from 'kysely'

import { shardOf } from '#audit/event.ts'
import type { Db } from '#platform/database.ts'
import type { PolicyKey } from '#policies/policy.ts'

import type { RecordedEvent } from './recorded-call.ts'

type Position = { xid: string; seq: string }

/** Events of other organizations are passed over, so a page may have few. */
const rowsPerPage = 2000
const newest: Position = { xid: '18446744073709551615', seq: '0' }

/**
 * The events of an organization's calls that policies judged, newest first, in pages. The log is ordered by shards, which
 * organizations share: whoever reads on decides how long.
 */
export async function* readJudgedCalls(
  db: Db,
  organizationId: string,
): AsyncGenerator<RecordedEvent[]> {
  const shard = shardOf(organizationId)
  for (let before: Position | undefined = newest; before;) {
    const end: Position | undefined = await findPageEnd(db, shard, before)
    const { xid, seq } = end ?? { xid: '0', seq: '0' }
    const { rows } = await sql<RecordedEvent>`
      select id, at, header from event
      where shard = ${shard} and (xid, seq) < (${before.xid}::text::xid8, ${before.seq}::bigint)
        and (xid, seq) >= (${xid}::text::xid8, ${seq}::bigint)
        and organization_id = ${organizationId} and kind = 'enforcement'
        and (header ? 'scores' or header->>'phase' = 'monitoring')
      order by event.xid desc, event.seq desc`.execute(db)
    yield rows
    before = end
  }
}

/** The last position of a full page; undefined if what is left fits into one. */
async function findPageEnd(
  db: Db,
  shard: number,
  { xid, seq }: Position,
): Promise<Position | undefined> {
  const { rows } = await sql<Position>`
    select xid::text as "xid", seq::text as "seq" from event
    where shard = ${shard} and (xid, seq) < (${xid}::text::xid8, ${seq}::bigint)
    order by event.xid desc, event.seq desc offset ${rowsPerPage - 1} limit 1`.execute(db)
  return rows[0]
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
