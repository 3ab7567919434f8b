import { createAdminApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { AccessTools } from '#access/tools.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'

import { countKeys } from './key-store.ts'
import { makeKey, refuseWiderGrant } from './make-key.ts'
import { presentAdminKey } from './present-key.ts'

const adminKeysMax = 50 // G8.18

export function serveCreateAdminApiKey(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, createAdminApiKey, tools, {
    prepare: ({ body }, { principal }) => refuseWiderGrant(principal, body.permissions),
    async change(tx, { body }, call) {
      const { organizationId } = call.principal
      const place = { organizationId, projectId: null }
      // Two creators at once would both see one free place.
      await lockOrganization(tx, organizationId)
      if ((await countKeys(tx, place)) >= adminKeysMax) {
        throw limitReached('administrator keys', adminKeysMax)
      }
      const { row, value } = await makeKey(tx, place, body, {
        hashKey: tools.hashKey,
        now: tools.now(),
      })
      const after = presentAdminKey(row)
      await tools.announce(tx, {
        organizationId,
        by: callerOf(call),
        action: 'created',
        before: null,
        after,
      })
      return { ...after, value }
    },
  })
}
