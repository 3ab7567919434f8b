import { requireWritable, type WritingCaller } from '#access/managed/require-writable.ts'
import { lockOrganization } from '#access/organizations/organization-store.ts'
import {
  type Backing,
  type GlassDeps,
  noteBrokenGlass,
  nothingAsked,
  requireProposal,
} from '#access/two-persons/require-proposal.ts'
import { callerOf } from '#audit/event.ts'
import { findRevision } from '#gateway-config/config/config-store.ts'
import type { MutationDeps } from '#http/bind-mutation.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError, notFound } from '#platform/api-error.ts'
import type { Db, Tx } from '#platform/database.ts'
import { enterEpoch } from '#policies/rollout/epoch-store.ts'

import type { UrlDeps } from './check-url.ts'
import { findGuardrail, readGuardrailNames } from './guardrail-store.ts'
import { presentGuardrail } from './present-guardrail.ts'
import type { SavedGuardrail } from './saved-guardrail.ts'

export type GuardrailSavingDeps = MutationDeps & UrlDeps & GlassDeps

/** A guardrail that does not exist, or belongs to another organization, is a 404. */
export async function requireGuardrail(db: Db | Tx, organizationId: string, id: string) {
  const saved = await findGuardrail(db, organizationId, id)
  if (!saved) throw notFound('guardrail')
  return saved
}

/** A guardrail that the request may change, or else 404 or 409. Locks the organization. */
export async function lockGuardrail(
  tx: Tx,
  deps: GuardrailSavingDeps,
  caller: WritingCaller,
  id: string,
): Promise<SavedGuardrail> {
  const { organizationId } = caller.principal
  await lockOrganization(tx, organizationId)
  const saved = await requireGuardrail(tx, organizationId, id)
  const managedBy = await requireWritable(tx, deps, caller, {
    table: 'guardrail',
    id,
    managedBy: saved.managedBy,
    present: (set) => presentGuardrail({ ...saved, managedBy: set }),
  })
  return { ...saved, managedBy }
}

/** No other guardrail has the name. The organization has to be locked. Returns how many others there are. */
export async function requireFreeName(tx: Tx, guardrail: SavedGuardrail): Promise<number> {
  const names = await readGuardrailNames(tx, guardrail.organizationId)
  names.delete(guardrail.id)
  if ([...names.values()].includes(guardrail.name)) throw nameTaken(guardrail.name)
  return names.size
}

export type Caller = { principal: Principal; requestId: string }

type Change =
  | { action: 'created'; before: null; after: SavedGuardrail }
  | { action: 'updated'; before: SavedGuardrail; after: SavedGuardrail }
  | { action: 'deleted'; before: SavedGuardrail; after: null }

/** Whether the guardrail decides about calls. */
const isEnforcing = (saved: SavedGuardrail | null) => saved?.enabled && saved.mode === 'enforcing'

/**
 * Requires a second person for a change of what decides about calls, writes its audit event and, unless the guardrail was and is disabled, has every process follow it: the change is
 * a step in the history of the organization's configuration, whose revision stays as it is.
 */
export async function announceGuardrail(
  tx: Tx,
  deps: Pick<GuardrailSavingDeps, 'announce' | 'metrics' | 'now'>,
  caller: Caller,
  { backing, ...change }: Change & { backing: Backing },
) {
  const { action, before, after } = change
  const permit =
    isEnforcing(before) || isEnforcing(after)
      ? await requireProposal(tx, caller, backing)
      : nothingAsked
  const { organizationId } = caller.principal
  const isInForce = before?.enabled === true || after?.enabled === true
  const hasNewSecret = before && after && !before.secret.equals(after.secret)
  await deps.announce(tx, {
    organizationId,
    by: callerOf(caller),
    action,
    ...presentChange(change),
    facts: { ...(hasNewSecret && { secrets_changed: ['secret'] }), ...permit.facts },
    ...(isInForce && { notifies: 'policy' as const }),
  })
  const resource = presentGuardrail(after ?? before)
  await noteBrokenGlass(tx, deps, caller, { permit, resource })
  if (!isInForce) return
  const gatewayRevision = await findRevision(tx, organizationId)
  await enterEpoch(tx, { organizationId, gatewayRevision, at: deps.now() })
}

const presentChange = ({ before, after }: Change) =>
  after
    ? { before: before && presentGuardrail(before), after: presentGuardrail(after) }
    : { before: presentGuardrail(before), after }

const nameTaken = (name: string) =>
  new ApiError('guardrail_name_taken', `Another guardrail has the name '${name}'.`, {
    param: 'body.name',
  })
