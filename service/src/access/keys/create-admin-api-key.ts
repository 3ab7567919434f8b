import { createAdminApiKey } from '@gatehouse/contract/api-key'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'

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
