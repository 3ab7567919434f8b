import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import type { FastifyInstance } from 'fastify'

import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import type { AccessTools } from '#access/tools.ts'
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
    async change(tx, { params, body }, { principal }) {
      const project = await lockActiveProject(tx, principal.organizationId, params.project_id)
      const place = { organizationId: principal.organizationId, projectId: project.id }
      if ((await countKeys(tx, place)) >= keysPerProjectMax) {
        throw limitReached('keys in a project', keysPerProjectMax)
      }
      const wish = { ...body, permissions: permissionsOf(body) }
      const { row, value } = await makeKey(tx, place, wish, {
        hashKey: tools.hashKey,
        now: tools.now(),
      })
      return { ...presentProjectKey(row), value }
    },
  })
}
