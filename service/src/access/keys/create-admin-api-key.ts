import { createAdminApiKey } from '@gatehouse/contract/api-key'
import type { Permission } from '@gatehouse/contract/permission'
import { rolePermissions } from '@gatehouse/contract/role'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { findRoleNow, lockOrganization } from '#access/organizations/organization-store.ts'
import { requirePermission } from '#access/unauthorized.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import type { Principal } from '#http/principal.ts'
import { limitReached } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { countKeys } from './key-store.ts'
import { makeKey, refuseWiderGrant } from './make-key.ts'
import { presentAdminKey } from './present-key.ts'

const adminKeysMax = 50 // per organization

export function serveCreateAdminApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, createAdminApiKey, deps, {
    prepare: ({ body }, { principal }) => refuseWiderGrant(principal, body.permissions),
    async change(tx, { body }, context) {
      const { organizationId } = context.principal
      const scope = { organizationId, projectId: null }
      // Without the lock two concurrent requests could both pass the count.
      const organization = await lockOrganization(tx, organizationId)
      await refuseWiderThanNow(tx, context.principal, body.permissions)
      if ((await countKeys(tx, scope)) >= adminKeysMax) {
        throw limitReached('administrator keys', adminKeysMax)
      }
      const { row, value } = await makeKey(tx, scope, body, {
        hashKey: deps.hashKey,
        now: deps.now(),
        usualSeconds: organization?.default_key_expiry_seconds ?? null,
        managedBy: context.writer.set,
      })
      const after = presentAdminKey(row)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'created',
        before: null,
        after,
      })
      return { ...after, value }
    },
  })
}

/**
 * The role of a member is read again, because for some seconds after a change the session still has the old one, and a key would
 * outlive it. The organization is locked, so that the role stays.
 */
async function refuseWiderThanNow(
  tx: Tx,
  { organizationId, member }: Principal,
  granted: readonly Permission[],
) {
  if (!member) return
  const role = await findRoleNow(tx, organizationId, member.id)
  const permissions = new Set<Permission>(role && rolePermissions[role])
  requirePermission(createAdminApiKey, { permissions })
  refuseWiderGrant({ permissions, member }, granted)
}
