import { deleteAdminApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { AccessTools } from '#access/tools.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError, notFound } from '#platform/api-error.ts'

import { hasKeyManager, revokeKey } from './key-store.ts'
import { presentAdminKey } from './present-key.ts'

export function serveDeleteAdminApiKey(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, deleteAdminApiKey, tools, {
    async change(tx, { params }, call) {
      const { organizationId } = call.principal
      const now = tools.now()
      // Two deletions at once would each leave the other's key as the last one.
      await lockOrganization(tx, organizationId)
      const revoked = await revokeKey(tx, { organizationId, projectId: null }, params.key_id, now)
      if (!revoked) throw notFound('api_key')
      if (!(await hasKeyManager(tx, organizationId, now))) throw lastAdminKey()
      const before = presentAdminKey(revoked)
      await tools.announce(tx, {
        organizationId,
        by: callerOf(call),
        action: 'deleted',
        before,
        after: null,
        tells: 'api_key',
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
    'This is the last working key that can manage administrator keys; create another one first.',
  )
