import type { GatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import { sql } from 'kysely'

import type { GatewayArm, GatewayDecision } from '#platform/database-types.ts'
import { type Db, executeNamed, type Tx } from '#platform/database.ts'

import type { CallerCounts } from './spike.ts'

/** A configuration that may be rolled back now. */
export type Candidate = {
  organizationId: string
  revision: number
  rollout: GatewayConfig['rollout']
  rolledBackUntil: Date | null
}

export const candidatesMax = 500

/** Only organizations with calls in the last minutes: the share of the others does not rise. */
export async function* readCandidates(db: Db, now: Date): AsyncGenerator<Candidate[]> {
  for (let after = ''; ;) {
    const query = sql<Candidate>`
      select organization_id as "organizationId", revision, config->'rollout' as "rollout",
        rolled_back_until as "rolledBackUntil"
      from gateway_config saved
      where organization_id > ${after} and config->'rollout'->>'rollback_on_spike' = 'true'
        and (rolled_back_until is null or rolled_back_until <= ${now})
        and exists (
          select from gateway_decision_minute recent
          where recent.organization_id = saved.organization_id
            and recent.minute >= ${now}::timestamptz - interval '2 minutes'
        )
      order by organization_id limit ${candidatesMax}`
    const rows = await executeNamed(db, 'rollback_candidates', query)
    if (rows.length > 0) yield rows
    const last = rows.at(-1)
    if (!last || rows.length < candidatesMax) return
    after = last.organizationId
  }
}

/** Whose decisions are counted, and since when. */
export type CountedSince = { organizationId: string; since: Date }
export type CountRow = {
  organizationId: string
  arm: GatewayArm
  decision: GatewayDecision
  count: number
}

/** The decisions of the rules that are saved now: those of older ones have an epoch before theirs. */
export async function readDecisionCounts(
  db: Db,
  asked: readonly CountedSince[],
): Promise<CountRow[]> {
  const [ids, times] = [
    asked.map(({ organizationId }) => organizationId),
    asked.map(({ since }) => since.toISOString()),
  ]
  const { rows } = await sql<CountRow>`
    select saved.organization_id as "organizationId", counts.arm, counts.decision,
      sum(counts.count)::float8 as "count"
    from unnest(${ids}::text[], ${times}::timestamptz[]) as asked (organization_id, since)
    join gateway_config saved on saved.organization_id = asked.organization_id
    join gateway_decision_minute counts on counts.organization_id = saved.organization_id
      and counts.minute >= asked.since and counts.policy_epoch >= (
        select min(epoch) from policy_epoch step
        where step.organization_id = saved.organization_id
          and step.gateway_revision = saved.sampling_revision
      )
    group by saved.organization_id, counts.arm, counts.decision`.execute(db)
  return rows
}

/**
 * How many credentials had calls since then by the rules that are saved now. `all` also has those of which nothing says anything
 * about the rules, as in the shadow or over a quota; `refused` are those with one of the decisions that count.
 */
export async function readCallerCounts(
  db: Db,
  { organizationId, since }: CountedSince,
  decisions: readonly GatewayDecision[],
): Promise<CallerCounts> {
  const { rows } = await sql<CallerCounts>`
    select count(*)::float8 as "all", count(*) filter (where is_enforced)::float8 as "enforced",
      count(*) filter (where is_refused)::float8 as "refused"
    from (
      select bool_or(is_enforced) as is_enforced,
        bool_or(is_enforced and decision = any (${decisions}::gateway_decision[])) as is_refused
      from gateway_caller known
      join gateway_config saved on saved.organization_id = known.organization_id
      where known.organization_id = ${organizationId} and known.minute >= ${since}
        and known.policy_epoch >= (
          select min(epoch) from policy_epoch step
          where step.organization_id = saved.organization_id
            and step.gateway_revision = saved.sampling_revision
        )
      group by caller
    ) callers`.execute(db)
  return rows[0] ?? { all: 0, enforced: 0, refused: 0 }
}

/** Removes counts that nothing reaches back to. Returns how many rows there were. */
export async function sweepDecisionCounts(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from gateway_decision_minute where ctid = any (array(
      select ctid from gateway_decision_minute where minute < ${before}
      limit ${limit} for update skip locked))`.execute(tx)
  return Number(numAffectedRows ?? 0)
}

export async function sweepCallers(tx: Tx, before: Date, limit: number): Promise<number> {
  const { numAffectedRows } = await sql`
    delete from gateway_caller where ctid = any (array(
      select ctid from gateway_caller where minute < ${before}
      limit ${limit} for update skip locked))`.execute(tx)
  return Number(numAffectedRows ?? 0)
}
