import { revisionMax } from '@gatehouse/contract/policy'
import {
  findContradiction,
  type GatewayConfig,
  GivenGatewayConfig,
} from '@gatehouse/contract/policy-gateway/config'
import {
  restoreGatewayRevision,
  type SavedGatewayState,
  saveGatewayConfig,
} from '@gatehouse/contract/policy-gateway/gateway'
import type { FastifyInstance } from 'fastify'

import { lockOrganization } from '#access/organizations/organization-store.ts'
import type { Announce } from '#audit/announce.ts'
import { callerOf } from '#audit/event.ts'
import { findUncovered } from '#gateway-config/decide/categories.ts'
import { bindMutation, type MutationDeps } from '#http/bind-mutation.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import { enterEpoch } from '#policies/rollout/epoch-store.ts'

import { findConfig, putConfig } from './config-store.ts'
import { addToHistory, findHistoryEntry } from './history-store.ts'
import {
  presentConfig,
  configFactsOf,
  matchesRevision,
  present,
  revise,
  type SavedConfig,
} from './saved-config.ts'

export type SavingDeps = MutationDeps & {
  announce: Announce
  /** Throws if the organization saves too often. */
  countSave(organizationId: string): Promise<void>
  /** Counts what an organization has used since the begin of the month, before it had a budget. */
  countEarlierUsage(
    tx: Tx,
    of: { organizationId: string; scope: 'organization'; subject: '' },
  ): Promise<void>
}
type Context = { principal: Principal; requestId: string }
type Saving = {
  config: GatewayConfig
  ifMatch: string | undefined
  /** The revision that is saved again. */
  restored?: number
}

export function serveSaveGatewayConfig(app: FastifyInstance, deps: SavingDeps) {
  bindMutation(app, saveGatewayConfig, deps, {
    async prepare({ body }, { principal }) {
      requireConsistent(body.config, 'body.config')
      await deps.countSave(principal.organizationId)
    },
    change: (tx, { headers, body }, context) =>
      saveConfig(tx, deps, context, { config: body.config, ifMatch: headers['If-Match'] }),
  })
}

export function serveRestoreGatewayRevision(app: FastifyInstance, deps: SavingDeps) {
  bindMutation(app, restoreGatewayRevision, deps, {
    prepare: (_, { principal }) => deps.countSave(principal.organizationId),
    async change(tx, { params, headers }, context) {
      const entry = await findHistoryEntry(tx, context.principal.organizationId, params.history_id)
      if (entry?.kind !== 'revision' || entry.revision === null) throw entryNotFound()
      const config = GivenGatewayConfig.parse(entry.content)
      const saving = { config, ifMatch: headers['If-Match'], restored: entry.revision }
      return saveConfig(tx, deps, context, saving)
    },
  })
}

/** `place` is where the configuration stands in the request. */
export function requireConsistent(config: GatewayConfig, place: string) {
  const found = findContradiction(config)
  if (!found) return
  const param = `${place}.${found.path}`
  throw new ApiError('invalid_gateway_config', `'${param}' ${found.rule}.`, { param })
}

async function saveConfig(
  tx: Tx,
  deps: SavingDeps,
  context: Context,
  saving: Saving,
): Promise<SavedGatewayState> {
  const { organizationId } = context.principal
  await lockOrganization(tx, organizationId)
  const before = await findConfig(tx, organizationId)
  const revision = before?.revision ?? 0
  if (!matchesRevision(saving.ifMatch, revision)) throw revisionConflict(revision)
  const after = revise(before, saving.config, deps.now())
  if (after !== before) await putInForce(tx, deps, context, { before, after, ...saving })
  return { ...present(after), warnings: warningsAbout(after.config) }
}

type Change = Saving & { before: SavedConfig | undefined; after: SavedConfig }

async function putInForce(tx: Tx, deps: SavingDeps, context: Context, change: Change) {
  const { before, after, restored } = change
  const { organizationId } = context.principal
  if (after.revision > revisionMax) throw noMoreRevisions()
  const by = callerOf(context)
  await putConfig(tx, organizationId, after)
  if (hasBudget(after) && !hasBudget(before)) {
    await deps.countEarlierUsage(tx, { organizationId, scope: 'organization', subject: '' })
  }
  const historyId = createId('hist', after.updatedAt)
  await addToHistory(tx, organizationId, {
    id: historyId,
    kind: 'revision',
    revision: after.revision,
    actor: by.id,
    content: after.config,
    created_at: after.updatedAt,
  })
  await deps.announce(tx, {
    organizationId,
    by,
    action: restored !== undefined ? 'restored' : before ? 'updated' : 'created',
    before: before ? presentConfig(before) : null,
    after: presentConfig(after),
    facts: {
      ...configFactsOf(after),
      history_id: historyId,
      ...(restored !== undefined && { restored_revision: restored }),
    },
    notifies: 'policy',
  })
  const gatewayRevision = after.revision
  await enterEpoch(tx, { organizationId, gatewayRevision, at: after.updatedAt })
}

const hasBudget = (saved: SavedConfig | undefined) =>
  saved?.config.org_controls.monthly_budget !== undefined

const warningsAbout = ({ rules }: GatewayConfig) =>
  findUncovered(rules.flagged_categories).map(
    (category) => `No scorer covers the category '${category}', so it is not found in calls.`,
  )

const revisionConflict = (revision: number) =>
  new ApiError(
    'revision_conflict',
    `The configuration is at revision ${revision} now; read it again and repeat your change.`,
    { param: 'header.If-Match' },
  )

const entryNotFound = () =>
  new ApiError('history_entry_not_found', 'The history has no saved revision with this id.')

const noMoreRevisions = () =>
  new ApiError('limit_reached', 'The configuration cannot have more revisions.')
