import { deleteAdminApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { AccessTools } from '#access/tools.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { ApiError, notFound } from '#platform/api-error.ts'

import { hasKeyManager, revokeKey } from './key-store.ts'

export function serveDeleteAdminApiKey(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, deleteAdminApiKey, tools, {
    async change(tx, { params }, { principal }) {
      const { organizationId } = principal
      const now = tools.now()
      // Two deletions at once would each leave the other's key as the last one.
      await lockOrganization(tx, organizationId)
      const revoked = await revokeKey(tx, { organizationId, projectId: null }, params.key_id, now)
      if (!revoked) throw notFound('api_key')
      if (!(await hasKeyManager(tx, organizationId, now))) throw lastAdminKey()
      await tools.announceChange(tx, { organizationId, kind: 'api_key', objectId: revoked.id })
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
