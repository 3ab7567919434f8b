import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { defaultProjectKeyPermissions, type Permission } from '@gatehouse/contract/permission'
import type { FastifyInstance } from 'fastify'

import { toAllowedModels } from '#access/allowed-models/allowed-models.ts'
import type { AccessDeps } from '#access/deps.ts'
import { findKeyExpiry } from '#access/organizations/organization-store.ts'
import { presentKeyDefaults } from '#access/projects/key-defaults.ts'
import { lockActiveProject } from '#access/projects/lock-active-project.ts'
import { holdProjectRole } from '#access/projects/project-role-store.ts'
import type { ProjectRow } from '#access/projects/project-store.ts'
import { confirmStanding, requireStanding } from '#access/projects/standing.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import { limitReached } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { decideOwner, notInProject } from './key-owner.ts'
import { countKeys } from './key-store.ts'
import { type KeyOwner, makeKey, refuseMoreThanDefault, refuseWiderGrant } from './make-key.ts'
import { countOwnKeys } from './own-key-store.ts'
import { presentProjectKey } from './present-key.ts'

const keysPerProjectMax = 10_000
/** In all projects. All of them are revoked in one transaction when the member leaves. */
const ownKeysMax = 100

const permissionsOf = ({ permissions }: { permissions?: Permission[] | null | undefined }) =>
  permissions ?? defaultProjectKeyPermissions

export function serveCreateProjectApiKey(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, createProjectApiKey, deps, {
    prepare({ params, body }, { principal }) {
      const standing = requireStanding(createProjectApiKey, principal, params.project_id)
      const isOwn = decideOwner(standing, principal, body.own) !== null
      if (isOwn) refuseMoreThanDefault(permissionsOf(body))
      else refuseWiderGrant(principal, permissionsOf(body), defaultProjectKeyPermissions)
    },
    async change(tx, { params, body }, context) {
      const { principal } = context
      const { organizationId } = principal
      const project = await lockActiveProject(tx, organizationId, params.project_id)
      const standing = await confirmStanding(tx, createProjectApiKey, principal, project.id)
      const memberId = decideOwner(standing, principal, body.own)
      const scope = { organizationId, projectId: project.id }
      if ((await countKeys(tx, scope)) >= keysPerProjectMax) {
        throw limitReached('keys in a project', keysPerProjectMax)
      }
      const allowedModels = toAllowedModels(body.allowed_models, deps.modelIdOf)
      const creation = { ...body, permissions: permissionsOf(body), allowedModels }
      const { row, value } = await makeKey(tx, scope, creation, {
        hashKey: deps.hashKey,
        now: deps.now(),
        usualSeconds: await findKeyExpiry(tx, organizationId),
        owner: memberId === null ? null : await prepareOwner(tx, project, memberId),
        managedBy: context.writer.set,
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

/** Until the transaction ends the member stays in the project: a removal then finds the key, and revokes it. */
async function prepareOwner(tx: Tx, project: ProjectRow, memberId: string): Promise<KeyOwner> {
  const { organization_id: organizationId, id: projectId } = project
  if (!(await holdProjectRole(tx, { organizationId, projectId, memberId }))) throw notInProject()
  // Counted without a lock of the member: requests in several projects at once may each make one more.
  if ((await countOwnKeys(tx, { organizationId, memberId }, ownKeysMax)) >= ownKeysMax) {
    throw limitReached('keys of one member', ownKeysMax)
  }
  return { memberId, defaults: presentKeyDefaults(project) }
}
