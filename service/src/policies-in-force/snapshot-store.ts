import type { PolicyContent } from '@gatehouse/contract/policy'
import { sql } from 'kysely'

import { isSameGateway, type StoredGateway } from '#gateway-config/compile-gateway.ts'
import {
  areSameGuardrails,
  type StoredGuardrail,
} from '#gateway-config/guardrails/open-guardrails.ts'
import type { Db } from '#platform/database.ts'

/** The versions in force in an organization, without their content. Names are not versioned. */
export type Published = {
  organizationId: string
  epoch: number
  policies: PolicyRef[]
  gateway: StoredGateway | null
  guardrails: readonly StoredGuardrail[]
}
export type PolicyRef = { policyId: string; name: string; version: number; sha256: string }

/** Compares hashes too: a database that was restored from a dump can reach the same epoch again. */
export function isSame(one: States, other: States): boolean {
  return (
    one.epoch === other.epoch &&
    isSameGateway(one.gateway, other.gateway) &&
    areSameGuardrails(one.guardrails, other.guardrails) &&
    one.policies.length === other.policies.length &&
    one.policies.every((policy, index) => {
      const { policyId, sha256, name } = other.policies[index] ?? {}
      return policy.policyId === policyId && policy.sha256 === sha256 && policy.name === name
    })
  )
}

/** What is in force somewhere, or should be. */
type States = Pick<Published, 'epoch' | 'gateway' | 'guardrails'> & {
  policies: readonly PolicyRef[]
}

export type VersionContent = PolicyContent &
  Omit<PolicyRef, 'name'> & { patternCosts: number[] | null }

const organizationsPerPage = 100

/** What is in force in the given organizations, read in one statement and therefore consistent. */
export async function readPublished(
  db: Db,
  organizationIds: readonly string[],
): Promise<Published[]> {
  const { rows } = await sql<PublishedRow>`
    select organization.id as "organizationId", organization.policy_epoch::float8 as "epoch",
      coalesce(
        json_agg(json_build_object(
          'policyId', policy.id,
          'name', policy.name,
          'version', policy.current_version,
          'sha256', encode(policy.published_sha256, 'hex')
        ) order by policy.id) filter (where policy.id is not null),
        '[]'
      ) as "policies",
      (
        select json_build_object(
          'revision', saved.revision,
          'sha256', encode(saved.sha256, 'hex'),
          'samplingRevision', saved.sampling_revision,
          'samplingKey', encode(saved.sampling_key, 'hex'),
          'rolledBackUntilMs', (extract(epoch from saved.rolled_back_until) * 1000)::float8,
          'config', saved.config
        ) from gateway_config saved where saved.organization_id = organization.id
      ) as "gateway",
      (
        select coalesce(
          json_agg(json_build_object(
            'id', guardrail.id,
            'name', guardrail.name,
            'url', guardrail.url,
            'mode', guardrail.mode,
            'onError', guardrail.on_error,
            'deadlineMs', guardrail.deadline_ms,
            'projectIds', guardrail.project_ids,
            'sealedSecret', encode(guardrail.secret, 'hex')
          ) order by guardrail.created_at, guardrail.id),
          '[]'
        ) from guardrail where guardrail.organization_id = organization.id and guardrail.enabled
      ) as "guardrails"
    from organization left join policy on policy.organization_id = organization.id
      and policy.deleted_at is null and policy.state in ('monitoring', 'enforcing')
    where organization.id = any(${organizationIds}::text[])
    group by organization.id`.execute(db)
  return rows.map(({ gateway, ...row }) => ({ ...row, gateway: gateway && toStored(gateway) }))
}

/** JSON has no dates. */
type GatewayJson = Omit<StoredGateway, 'rolledBackUntil'> & { rolledBackUntilMs: number | null }
type PublishedRow = Omit<Published, 'gateway'> & { gateway: GatewayJson | null }

const toStored = ({ rolledBackUntilMs, ...gateway }: GatewayJson): StoredGateway => ({
  ...gateway,
  rolledBackUntil: rolledBackUntilMs === null ? null : new Date(rolledBackUntilMs),
})

/** Every organization that has ever published a policy or saved a configuration, in pages. */
export async function* readOrganizationIds(db: Db): AsyncGenerator<string[]> {
  for (let after = ''; ;) {
    const rows = await db
      .selectFrom('organization')
      .select('id')
      .where('id', '>', after)
      .where('policy_epoch', '>', '0')
      .orderBy('id')
      .limit(organizationsPerPage)
      .execute()
    if (rows.length > 0) yield rows.map(({ id }) => id)
    const last = rows.at(-1)
    if (!last || rows.length < organizationsPerPage) return
    after = last.id
  }
}

/** The content of versions. Versions are immutable, so it does not matter when they are read. */
export async function readContents(
  db: Db,
  organizationId: string,
  wanted: readonly PolicyRef[],
): Promise<VersionContent[]> {
  const [ids, versions] = [
    wanted.map(({ policyId }) => policyId),
    wanted.map(({ version }) => version),
  ]
  const { rows } = await sql<VersionContent>`
    select v.policy_id as "policyId", v.version, encode(v.sha256, 'hex') as "sha256", v.rule,
      v.direction, v.mode, v.scope, v.project_ids, v.match_threshold_basis_points,
      v.pattern_costs as "patternCosts"
    from unnest(${ids}::text[], ${versions}::integer[]) as wanted (policy_id, version)
    join policy_version v on v.organization_id = ${organizationId}
      and v.policy_id = wanted.policy_id and v.version = wanted.version`.execute(db)
  return rows
}
