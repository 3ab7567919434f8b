import { matchesRevision } from '@gatehouse/contract/organization/if-match'
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
import { revisionMax } from '@gatehouse/contract/revision'
import type { FastifyInstance } from 'fastify'

import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import {
  type Backing,
  type GlassDeps,
  noteBrokenGlass,
  requireProposal,
} from '#access/two-persons/require-proposal.ts'
import { callerOf } from '#audit/event.ts'
import { findUncovered } from '#gateway-config/decide/categories.ts'
import { bindMutation, type MutationDeps } from '#http/bind-mutation.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'
import { createId } from '#platform/id.ts'
import { enterEpoch } from '#policies/rollout/epoch-store.ts'

import { findConfig, putConfig } from './config-store.ts'
import { addToHistory, findHistoryEntry } from './history-store.ts'
import { presentConfig, configFactsOf, present, revise, type SavedConfig } from './saved-config.ts'

export type SavingDeps = MutationDeps &
  GlassDeps & {
    /** Throws if the organization saves too often. */
    countSave(organizationId: string): Promise<void>
    /** Counts what an organization has used since the begin of the month, before it had a budget. */
    countEarlierUsage(
      tx: Tx,
      of: { organizationId: string; scope: 'organization'; subject: '' },
    ): Promise<void>
  }
type Saving = {
  config: GatewayConfig
  ifMatch: string | undefined
  /** The revision that is saved again. */
  restored?: number
  backing: Backing
}

export function serveSaveGatewayConfig(app: FastifyInstance, deps: SavingDeps) {
  bindMutation(app, saveGatewayConfig, deps, {
    async prepare({ body }, { principal }) {
      requireConsistent(body.config, 'body.config')
      await deps.countSave(principal.organizationId)
    },
    change: (tx, { headers, body }, context) =>
      saveConfig(tx, deps, context, {
        config: body.config,
        ifMatch: headers['If-Match'],
        backing: { glass: body },
      }),
  })
}

export function serveRestoreGatewayRevision(app: FastifyInstance, deps: SavingDeps) {
  bindMutation(app, restoreGatewayRevision, deps, {
    prepare: (_, { principal }) => deps.countSave(principal.organizationId),
    change: (tx, { params, query, headers }, context) =>
      restoreConfig(tx, deps, context, {
        historyId: params.history_id,
        ifMatch: headers['If-Match'],
        backing: { glass: query },
      }),
  })
}

/** Saves a revision of the history again. */
export async function restoreConfig(
  tx: Tx,
  deps: SavingDeps,
  context: WritingCaller,
  { historyId, ...saving }: Pick<Saving, 'ifMatch' | 'backing'> & { historyId: string },
): Promise<SavedGatewayState> {
  const { config, restored } = await requireRevision(
    tx,
    context.principal.organizationId,
    historyId,
  )
  return saveConfig(tx, deps, context, { ...saving, config, restored })
}

/** A revision that the history has; a simulation, or an id that it does not have, is a 404. */
export async function requireRevision(db: Db | Tx, organizationId: string, historyId: string) {
  const entry = await findHistoryEntry(db, organizationId, historyId)
  if (entry?.kind !== 'revision' || entry.revision === null) throw entryNotFound()
  return { config: GivenGatewayConfig.parse(entry.content), restored: entry.revision }
}

/** `place` is where the configuration stands in the request. */
export function requireConsistent(config: GatewayConfig, place: string) {
  const found = findContradiction(config)
  if (!found) return
  const param = `${place}.${found.path}`
  throw new ApiError('invalid_gateway_config', `'${param}' ${found.rule}.`, { param })
}

export async function saveConfig(
  tx: Tx,
  deps: SavingDeps,
  context: WritingCaller,
  saving: Saving,
): Promise<SavedGatewayState> {
  const { organizationId } = context.principal
  await lockOrganization(tx, organizationId)
  const before = await findWritable(tx, deps, context)
  const revision = before?.revision ?? 0
  if (!matchesRevision(saving.ifMatch, revision)) throw revisionConflict(revision)
  const revised = revise(before, saving.config, deps.now())
  const after = before ? revised : { ...revised, managedBy: context.writer.set }
  if (after !== before) await putInForce(tx, deps, context, { before, after, ...saving })
  return { ...present(after), warnings: warningsAbout(after.config) }
}

/** What is saved, if the request may change it; undefined: nothing is. The organization is locked. */
async function findWritable(tx: Tx, deps: SavingDeps, caller: WritingCaller) {
  const { organizationId } = caller.principal
  const saved = await findConfig(tx, organizationId)
  if (!saved) return undefined
  const managedBy = await requireWritable(tx, deps, caller, {
    table: 'gateway_config',
    id: organizationId,
    managedBy: saved.managedBy,
    present: (set) => presentConfig({ ...saved, managedBy: set }),
    facts: configFactsOf(saved),
  })
  return { ...saved, managedBy }
}

type Change = Saving & { before: SavedConfig | undefined; after: SavedConfig }

async function putInForce(tx: Tx, deps: SavingDeps, context: WritingCaller, change: Change) {
  const { before, after, restored, backing } = change
  const { organizationId } = context.principal
  const permit = await requireProposal(tx, context, backing)
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
      ...permit.facts,
    },
    notifies: 'policy',
  })
  await noteBrokenGlass(tx, deps, context, { permit, resource: presentConfig(after) })
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
