import { deleteAdminApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError, notFound } from '#platform/api-error.ts'

import { hasKeyManager, revokeKey } from './key-store.ts'
import { presentAdminKey } from './present-key.ts'

export function serveDeleteAdminApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, deleteAdminApiKey, deps, {
    async change(tx, { params }, context) {
      const { organizationId } = context.principal
      const now = deps.now()
      // Without the lock two concurrent deletions would each see the other's key as the remaining one.
      await lockOrganization(tx, organizationId)
      const revoked = await revokeKey(tx, { organizationId, projectId: null }, params.key_id, now)
      if (!revoked) throw notFound('api_key')
      if (!(await hasKeyManager(tx, organizationId, now))) throw lastAdminKey()
      const before = presentAdminKey(revoked)
      await deps.announce(tx, {
        organizationId,
        by: callerOf(context),
        action: 'deleted',
        before,
        after: null,
        notifies: 'api_key',
      })
      return {
        id: revoked.id,
        object: 'organization.admin_api_key.deleted' as const,
        deleted: true as const,
      }
    },
  })
}

const lastAdminKey = () =>
  new ApiError(
    'last_admin_key',
    'This is the last valid key that can manage administrator keys; create another one first.',
  )
