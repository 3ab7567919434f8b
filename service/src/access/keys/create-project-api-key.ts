import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'

import { countKeys } from './key-store.ts'
import { makeKey, refuseWiderGrant } from './make-key.ts'
import { presentProjectKey } from './present-key.ts'

const keysPerProjectMax = 10_000

const permissionsOf = ({ permissions }: { permissions?: Permission[] | null | undefined }) =>
  permissions ?? defaultProjectKeyPermissions

export function serveCreateProjectApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, createProjectApiKey, deps, {
    prepare({ body }, { principal }) {
      refuseWiderGrant(principal, permissionsOf(body), defaultProjectKeyPermissions)
    },
    async change(tx, { params, body }, context) {
      const { organizationId } = context.principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      const scope = { organizationId, projectId: project.id }
      if ((await countKeys(tx, scope)) >= keysPerProjectMax) {
        throw limitReached('keys in a project', keysPerProjectMax)
      }
      const creation = { ...body, permissions: permissionsOf(body) }
      const { row, value } = await makeKey(tx, scope, creation, {
        hashKey: deps.hashKey,
        now: deps.now(),
      })
      const after = presentProjectKey(row, {})
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
