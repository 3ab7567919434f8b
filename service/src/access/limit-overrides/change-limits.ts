import type {
  LimitName,
  LimitOverrides,
  LimitsEdit,
  LimitValues,
  Plan,
} from '@gatehouse/contract/limits'

import { findOrganization } from '#access/organizations/organization-store.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { findOverride, type OverrideScope, saveOverride } from './override-store.ts'
import { areSameLimits, editLimits, findAboveOrganization } from './own-limits.ts'

/** Finds the limits that hold for an organization as a whole. */
export type FindOrganizationLimits = (organization: {
  plan: Plan
  paidMicroUsd: number
  limitOverrides: LimitOverrides | null
}) => Readonly<Record<LimitName, number>>

type LimitsChange = { before: LimitValues; after: LimitValues; isChanged: boolean }

/**
 * Changes the limits of a project or key, at most to the organization's. The caller has locked the row of the project or
 * key, so that two changes cannot overwrite each other. Without an edit the limits are only read.
 */
export async function changeLimits(
  tx: Tx,
  at: OverrideScope,
  edit: LimitsEdit | undefined,
  findOrganizationLimits: FindOrganizationLimits,
): Promise<LimitsChange> {
  const before = await findOverride(tx, at)
  const after = editLimits(before, edit)
  const isChanged = !areSameLimits(before, after)
  if (edit) await refuseAboveOrganization(tx, at.organizationId, edit, findOrganizationLimits)
  if (isChanged) await saveOverride(tx, at, after)
  return { before, after, isChanged }
}

/** Reads the organization anew: what its credential carries may be some seconds old. */
async function refuseAboveOrganization(
  tx: Tx,
  organizationId: string,
  edit: LimitsEdit,
  findOrganizationLimits: FindOrganizationLimits,
) {
  const organization = await findOrganization(tx, organizationId)
  if (!organization) throw new Error('the organization of a credential does not exist')
  const scope = { organizationId, scope: 'organization', scopeId: organizationId } as const
  const above = findAboveOrganization(
    edit,
    findOrganizationLimits({
      plan: organization.plan,
      paidMicroUsd: Number(organization.paid_micro_usd),
      limitOverrides: { organization: await findOverride(tx, scope) },
    }),
  )
  if (!above) return
  const { name, number, limit } = above
  throw new ApiError(
    'invalid_parameter',
    `'body.limits.${name}' is ${number}, above the organization's limit of ${limit}; use at most ${limit}.`,
    { param: `body.limits.${name}` },
  )
}
