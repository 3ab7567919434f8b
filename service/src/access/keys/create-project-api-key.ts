import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import type { FastifyInstance } from 'fastify'

import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import type { AccessTools } from '#access/tools.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'

import { countKeys } from './key-store.ts'
import { makeKey, refuseWiderGrant } from './make-key.ts'
import { presentProjectKey } from './present-key.ts'

const keysPerProjectMax = 10_000

const permissionsOf = ({ permissions }: { permissions?: Permission[] | null | undefined }) =>
  permissions ?? defaultProjectKeyPermissions

export function serveCreateProjectApiKey(app: FastifyInstance, tools: AccessTools) {
  bindMutation(app, createProjectApiKey, tools, {
    prepare({ body }, { principal }) {
      refuseWiderGrant(principal, permissionsOf(body), defaultProjectKeyPermissions)
    },
    async change(tx, { params, body }, call) {
      const { organizationId } = call.principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      const place = { organizationId, projectId: project.id }
      if ((await countKeys(tx, place)) >= keysPerProjectMax) {
        throw limitReached('keys in a project', keysPerProjectMax)
      }
      const wish = { ...body, permissions: permissionsOf(body) }
      const { row, value } = await makeKey(tx, place, wish, {
        hashKey: tools.hashKey,
        now: tools.now(),
      })
      const after = presentProjectKey(row)
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
