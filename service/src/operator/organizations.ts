import type { Plan } from '@gatehouse/contract/limits'

import {
  createOrganization,
  type StartingTerms,
  recoverOrganization,
  setStatus,
} from '#access/manage-organizations.ts'
import {
  findOrganization,
  findOrganizationPosition,
  listOrganizations,
} from '#access/organizations/organization-store.ts'
import { setPlan } from '#access/organizations/tier.ts'
import { findAccount } from '#credits/holds/account-store.ts'
import { tierOf } from '#limits/tiers.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'
import { grantStartingCredits } from './credits.ts'
import { noOrganization, presentAccount, presentOrganization, presentWithPlans } from './present.ts'

export async function createOrganizationWithCredits(
  { name, credits, ...terms }: StartingTerms & { name: string; credits: bigint },
  deps: OperatorDeps,
): Promise<CommandOutput> {
  const { organizationId, projectId, adminKey } = await createOrganization(name, deps, terms)
  const { plan, limits } = terms
  const made = {
    organization_id: organizationId,
    project_id: projectId,
    admin_key: adminKey,
    plan,
    tier: tierOf({ plan, paidMicroUsd: 0 }),
    ...limits,
  }
  if (credits === 0n) return { result: made }
  // The key is shown only now, so a failed grant must not keep it from being printed.
  const failure = await grantStartingCredits(organizationId, credits, deps)
  const result = { ...made, credits_granted: failure === undefined }
  return failure === undefined ? { result } : { result, failure, exitCode: 1 }
}

const pageSize = 100

export async function listOrganizationPage(
  afterId: string | undefined,
  { db }: OperatorDeps,
): Promise<CommandOutput> {
  const after = afterId === undefined ? undefined : await findOrganizationPosition(db, afterId)
  if (afterId !== undefined && !after) throw noOrganization(afterId)
  const rows = await listOrganizations(db, { after, limit: pageSize, order: 'asc' })
  const data = rows.slice(0, pageSize).map(presentOrganization)
  const hasMore = rows.length > pageSize
  const lines = data.map((each) => Object.values(each).join('  '))
  const next = hasMore ? [`There are more: organizations list --after ${data.at(-1)?.id}`] : []
  const text = [...lines, ...next].join('\n') || 'There are no organizations yet.'
  return { result: { data, has_more: hasMore }, text: `${text}\n` }
}

export async function showOrganization(id: string, { db }: OperatorDeps): Promise<CommandOutput> {
  const organization = await findOrganization(db, id)
  const account = await findAccount(db, id)
  if (!organization || !account) throw noOrganization(id)
  return { result: { ...presentWithPlans(organization), ...presentAccount(account) } }
}

export async function changeOrganizationStatus(
  id: string,
  status: 'active' | 'suspended',
  deps: OperatorDeps,
): Promise<CommandOutput> {
  const row = await setStatus(id, status, deps)
  if (!row) throw noOrganization(id)
  return { result: presentOrganization(row) }
}

export async function createRecoveryKey(id: string, deps: OperatorDeps): Promise<CommandOutput> {
  const made = await recoverOrganization(id, deps)
  if (!made) throw noOrganization(id)
  return { result: { organization_id: made.organizationId, admin_key: made.adminKey } }
}

export async function setOperatorPlan(
  id: string,
  plan: Plan,
  deps: OperatorDeps,
): Promise<CommandOutput> {
  const row = await setPlan(id, plan, deps)
  if (!row) throw noOrganization(id)
  return { result: presentWithPlans(row) }
}
