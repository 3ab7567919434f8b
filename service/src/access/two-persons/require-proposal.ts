import type { BreakGlass } from '@gatehouse/contract/two-persons/break-glass'

import { asksForTwoPersons, findRoleNow } from '#access/organizations/organization-store.ts'
import { permissionDenied } from '#access/unauthorized.ts'
import type { Announce } from '#audit/announce.ts'
import { callerOf, type EventHeader } from '#audit/event.ts'
import type { Resource } from '#audit/revision-content.ts'
import type { Principal } from '#http/principal.ts'
import { ApiError } from '#platform/api-error.ts'
import type { Tx } from '#platform/database.ts'
import type { Metrics } from '#platform/metrics.ts'
import { afterCommit } from '#platform/transaction.ts'

// What needs a second person, where the organization asks for two (docs/specification/two-persons.md).

type Context = { principal: Principal; requestId: string }

/** Why a change may go ahead: what its event says of it, and whether an owner broke the glass. */
export type Permit = {
  readonly facts: EventHeader
  readonly brokenGlass: { reason: string } | null
}

export const nothingAsked: Permit = { facts: {}, brokenGlass: null }

/** What a change has that is not approved beforehand: it was proposed and approved, or an owner breaks the glass. */
export type Backing = { readonly permit: Permit } | { readonly glass: BreakGlass }

/** Throws unless the change was proposed and approved, where the organization asks for two persons, or an owner breaks the glass. */
export async function requireProposal(
  tx: Tx,
  { principal }: Context,
  backing: Backing,
): Promise<Permit> {
  if ('permit' in backing) return backing.permit
  const { glass } = backing
  if (!(await asksForTwoPersons(tx, principal.organizationId))) return nothingAsked
  if (glass.break_glass) return breakGlass(tx, principal, glass)
  throw proposalRequired()
}

/** The role is read here: for some seconds after a change the session still has the old one. */
export async function breakGlass(
  tx: Tx,
  { organizationId, member }: Principal,
  { reason = '' }: BreakGlass,
): Promise<Permit> {
  const role = member && (await findRoleNow(tx, organizationId, member.id))
  if (role !== 'owner') {
    throw permissionDenied(
      'policies.publish',
      'Only an owner who has signed in can break the glass; ask another member for an approval.',
    )
  }
  return { facts: { break_glass: true, reason }, brokenGlass: { reason } }
}

export type GlassDeps = { announce: Announce; metrics: Pick<Metrics, 'glassBroken'> }

/** Writes the event of its own that tells those who watch for it. `resource` is what was changed, as it is now. */
export async function noteBrokenGlass(
  tx: Tx,
  { announce, metrics }: GlassDeps,
  context: Context,
  { permit, resource }: { permit: Permit; resource: Resource },
) {
  if (!permit.brokenGlass) return
  await announce(tx, {
    organizationId: context.principal.organizationId,
    by: callerOf(context),
    action: 'glass_broken',
    before: resource,
    after: resource,
    facts: permit.brokenGlass,
  })
  afterCommit(tx, () => metrics.glassBroken.inc())
}

const proposalRequired = () =>
  new ApiError(
    'approval_required',
    'Your organization asks for two persons: send this change to POST /api/policy-gateway/proposals, and another member approves it.',
  )
