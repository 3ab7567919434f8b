import { matchesRevision } from '@gatehouse/contract/organization/if-match'
import {
  type OrganizationSettings,
  type OrganizationSettingsEdit,
  updateOrganizationSettings,
} from '@gatehouse/contract/organization/settings'
import { Role, rolePermissions } from '@gatehouse/contract/role'
import type { FastifyInstance } from 'fastify'

import type { AccessDeps } from '#access/deps.ts'
import {
  countActiveMembers,
  lockOrganization,
  saveSettings,
} from '#access/organizations/organization-store.ts'
import {
  type Backing,
  type GlassDeps,
  noteBrokenGlass,
  nothingAsked,
  requireProposal,
} from '#access/two-persons/require-proposal.ts'
import { callerOf } from '#audit/event.ts'
import { bindMutation } from '#http/bind-mutation.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'

import { editSettings, presentSettings } from './settings.ts'

export function serveUpdateOrganizationSettings(app: FastifyInstance, deps: AccessDeps) {
  bindMutation(app, updateOrganizationSettings, deps, {
    change: (tx, { headers, body }, context) =>
      changeSettings(tx, deps, context, {
        edit: body,
        ifMatch: headers['If-Match'],
        backing: { glass: body },
      }),
  })
}

type Caller = { principal: Principal; requestId: string }
type Change = { edit: OrganizationSettingsEdit; ifMatch: string | undefined; backing: Backing }

export async function changeSettings(
  tx: Tx,
  deps: GlassDeps,
  caller: Caller,
  { edit, ifMatch, backing }: Change,
): Promise<OrganizationSettings> {
  const { organizationId } = caller.principal
  const before = presentSettings(await lockOrganization(tx, organizationId))
  if (!matchesRevision(ifMatch, before.revision)) throw revisionConflict(before.revision)
  const after = editSettings(before, edit)
  if (after === before) return before
  const permit = await permitRule(tx, caller, { before, after, backing })
  await saveSettings(tx, after)
  await deps.announce(tx, {
    organizationId,
    by: callerOf(caller),
    action: 'updated',
    before,
    after,
    facts: permit.facts,
  })
  await noteBrokenGlass(tx, deps, caller, { permit, resource: after })
  return after
}

type RuleChange = {
  before: OrganizationSettings
  after: OrganizationSettings
  backing: Backing
}

/** The rule of two persons begins where there are two, and one alone does not end it. */
async function permitRule(tx: Tx, caller: Caller, { before, after, backing }: RuleChange) {
  const [was, is] = [before.publish_requires_approval, after.publish_requires_approval]
  if (was && !is) return requireProposal(tx, caller, backing)
  if (is && !was && (await countActiveMembers(tx, after.id, publishers)) < 2) throw tooFewMembers()
  return nothingAsked
}

const publishers = Role.options.filter((role) => rolePermissions[role].includes('policies.publish'))

const tooFewMembers = () => {
  const param = 'body.publish_requires_approval'
  return new ApiError(
    'invalid_parameter',
    `'${param}' can be true once two active members may publish; before that, nothing could be approved.`,
    { param },
  )
}

const revisionConflict = (revision: number) =>
  new ApiError(
    'revision_conflict',
    `The settings are at revision ${revision} now; read them again and repeat your change.`,
    { param: 'header.If-Match' },
  )
