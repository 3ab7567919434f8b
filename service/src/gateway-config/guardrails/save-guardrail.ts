import type { Announce } from '#audit/announce.ts'
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

export type GuardrailSavingDeps = MutationDeps & UrlDeps & { announce: Announce }

/** A guardrail that does not exist, or belongs to another organization, is a 404. */
export async function requireGuardrail(db: Db | Tx, organizationId: string, id: string) {
  const saved = await findGuardrail(db, organizationId, id)
  if (!saved) throw notFound('guardrail')
  return saved
}

/** No other guardrail has the name. The organization has to be locked. Returns how many others there are. */
export async function requireFreeName(tx: Tx, guardrail: SavedGuardrail): Promise<number> {
  const names = await readGuardrailNames(tx, guardrail.organizationId)
  names.delete(guardrail.id)
  if ([...names.values()].includes(guardrail.name)) throw nameTaken(guardrail.name)
  return names.size
}

type Change =
  | { action: 'created'; before: null; after: SavedGuardrail }
  | { action: 'updated'; before: SavedGuardrail; after: SavedGuardrail }
  | { action: 'deleted'; before: SavedGuardrail; after: null }

/**
 * Writes the audit event of a change and, unless the guardrail was and is disabled, has every process follow it: the change is
 * a step in the history of the organization's configuration, whose revision stays as it is.
 */
export async function announceGuardrail(
  tx: Tx,
  { announce, now }: Pick<GuardrailSavingDeps, 'announce' | 'now'>,
  caller: { principal: Principal; requestId: string },
  change: Change,
) {
  const { action, before, after } = change
  const { organizationId } = caller.principal
  const isInForce = before?.enabled === true || after?.enabled === true
  const hasNewSecret = before && after && !before.secret.equals(after.secret)
  await announce(tx, {
    organizationId,
    by: callerOf(caller),
    action,
    ...presentChange(change),
    ...(hasNewSecret && { facts: { secrets_changed: ['secret'] } }),
    ...(isInForce && { notifies: 'policy' as const }),
  })
  if (!isInForce) return
  const gatewayRevision = await findRevision(tx, organizationId)
  await enterEpoch(tx, { organizationId, gatewayRevision, at: now() })
}

const presentChange = ({ before, after }: Change) =>
  after
    ? { before: before && presentGuardrail(before), after: presentGuardrail(after) }
    : { before: presentGuardrail(before), after }

const nameTaken = (name: string) =>
  new ApiError('guardrail_name_taken', `Another guardrail has the name '${name}'.`, {
    param: 'body.name',
  })
