import type { LimitValues, Plan } from '@gatehouse/contract/limits'
import { AdminKeyPermission } from '@gatehouse/contract/permission'

import type { Announce } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import { transact } from '#platform/transaction.ts'

import { makeKey } from './keys/make-key.ts'
import { presentAdminKey } from './keys/present-key.ts'
import { saveOverride } from './limit-overrides/override-store.ts'
import {
  insertOrganization,
  lockOrganization,
  type OrganizationRow,
  setOrganizationStatus,
} from './organizations/organization-store.ts'
import { insertProject } from './projects/project-store.ts'
import type { HashKey } from './secret.ts'

type Deps = { db: Db; now: Clock; hashKey: HashKey; announce: Announce }

/** What the operator gives an organization: a plan, and limits that hold instead of its tier's. */
export type StartingTerms = { plan: Plan; limits: LimitValues }

const usualTerms: StartingTerms = { plan: 'free', limits: {} }

/**
 * Creates an organization with a project named Default and a key that has every permission of its kind. Plan and limits
 * are part of the same transaction: there is never an organization without what it was to have.
 */
export async function createOrganization(
  name: string,
  { db, now, hashKey, announce }: Deps,
  { plan, limits } = usualTerms,
) {
  return transact(db, async (tx) => {
    const createdAt = now()
    const organization = { id: createId('org', createdAt), name, plan, createdAt }
    const { id, status } = await insertOrganization(tx, organization)
    await saveOverride(tx, { organizationId: id, scope: 'organization', scopeId: id }, limits)
    const project = await insertProject(tx, id, {
      id: createId('proj', createdAt),
      name: 'Default',
      isDefault: true,
      managedBy: null,
      createdAt,
    })
    const creation = { name: 'First administrator key', permissions: AdminKeyPermission.options }
    const scope = { organizationId: id, projectId: null }
    const key = await makeKey(tx, scope, creation, { hashKey, now: createdAt })
    const hasLimits = Object.keys(limits).length > 0
    const after = {
      ...withStatus(id, status),
      name,
      ...(plan !== 'free' && { plan }),
      ...(hasLimits && { limits }),
      project_id: project.id,
      key_id: key.row.id,
    }
    await announce(tx, { organizationId: id, by: operator, action: 'created', before: null, after })
    return { organizationId: id, projectId: project.id, adminKey: key.value }
  })
}

/**
 * Creates an administrator key for an organization that has lost its own; undefined when there is no such
 * organization. The limit on the number of keys does not apply: without a key none can be revoked.
 */
export async function recoverOrganization(organizationId: string, deps: Deps) {
  const { db, now, hashKey, announce } = deps
  return transact(db, async (tx) => {
    if (!(await lockOrganization(tx, organizationId))) return undefined
    const creation = { name: 'Recovery key', permissions: AdminKeyPermission.options }
    const scope = { organizationId, projectId: null }
    const { row, value } = await makeKey(tx, scope, creation, { hashKey, now: now() })
    const after = presentAdminKey(row)
    await announce(tx, { organizationId, by: operator, action: 'created', before: null, after })
    return { organizationId, adminKey: value }
  })
}

/** Suspends or reinstates an organization; undefined when there is none. Repeating changes nothing. */
export async function setStatus(
  organizationId: string,
  status: OrganizationRow['status'],
  { db, announce }: Deps,
): Promise<OrganizationRow | undefined> {
  return transact(db, async (tx) => {
    const organization = await lockOrganization(tx, organizationId)
    if (!organization || organization.status === status) return organization
    await announce(tx, {
      organizationId,
      by: operator,
      action: status === 'suspended' ? 'suspended' : 'reinstated',
      before: withStatus(organizationId, organization.status),
      after: withStatus(organizationId, status),
      notifies: 'organization',
    })
    return setOrganizationStatus(tx, organizationId, status)
  })
}

const withStatus = (id: string, status: OrganizationRow['status']) => ({
  id,
  object: 'organization',
  status,
})
