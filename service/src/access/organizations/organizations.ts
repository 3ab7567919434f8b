import { AdminKeyPermission } from '@gatehouse/contract/permission'

import { makeKey } from '#access/keys/make-key.ts'
import { presentAdminKey } from '#access/keys/present-key.ts'
import { insertProject } from '#access/projects/project-store.ts'
import type { HashKey } from '#access/secret.ts'
import type { Announce } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import { transact } from '#platform/transaction.ts'

import {
  insertOrganization,
  lockOrganization,
  type OrganizationRow,
  setOrganizationStatus,
} from './organization-store.ts'

type Tools = { db: Db; now: Clock; hashKey: HashKey; announce: Announce }

/** An organization starts with a project named Default and a key that may do all that keys may do. */
export async function createOrganization(name: string, { db, now, hashKey, announce }: Tools) {
  return transact(db, async (tx) => {
    const createdAt = now()
    const organization = { id: createId('org', createdAt), name, createdAt }
    const { id, status } = await insertOrganization(tx, organization)
    const project = await insertProject(tx, id, {
      id: createId('proj', createdAt),
      name: 'Default',
      isDefault: true,
      createdAt,
    })
    const wish = { name: 'First administrator key', permissions: AdminKeyPermission.options }
    const place = { organizationId: id, projectId: null }
    const key = await makeKey(tx, place, wish, { hashKey, now: createdAt })
    const after = { ...withStatus(id, status), name, project_id: project.id, key_id: key.row.id }
    await announce(tx, { organizationId: id, by: operator, action: 'created', before: null, after })
    return { organizationId: id, projectId: project.id, adminKey: key.value }
  })
}

/**
 * A new key for an organization that has lost its own; undefined when there is no such organization.
 * The limit on their number does not apply: whoever has lost all keys can revoke none.
 */
export async function recoverOrganization(organizationId: string, tools: Tools) {
  const { db, now, hashKey, announce } = tools
  return transact(db, async (tx) => {
    if (!(await lockOrganization(tx, organizationId))) return undefined
    const wish = { name: 'Recovery key', permissions: AdminKeyPermission.options }
    const place = { organizationId, projectId: null }
    const { row, value } = await makeKey(tx, place, wish, { hashKey, now: now() })
    const after = presentAdminKey(row)
    await announce(tx, { organizationId, by: operator, action: 'created', before: null, after })
    return { organizationId, adminKey: value }
  })
}

/** Suspends or reinstates; undefined when there is no such organization. Repeating changes nothing. */
export async function setStatus(
  organizationId: string,
  status: OrganizationRow['status'],
  { db, announce }: Tools,
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
      tells: 'organization',
    })
    return setOrganizationStatus(tx, organizationId, status)
  })
}

const withStatus = (id: string, status: OrganizationRow['status']) => ({
  ...{ id, object: 'organization', status },
})
