import type { StripeEventOutcome } from '@gatehouse/contract/webhook'

import { findOrganization } from '#access/organizations/organization-store.ts'
import { changePlan } from '#access/organizations/tier.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { applyChargeReport } from './apply-charge-report.ts'
import { addLinks, applyPayment } from './apply-payment.ts'
import { applied, type ApplyDeps, type ApplyResult } from './event-outcome.ts'
import type { NamedOrganization } from './event-schemas.ts'
import {
  findCustomerOrganization,
  findWaitingEvents,
  insertCustomer,
  insertEvent,
  lockEvents,
  setEventState,
} from './event-store.ts'
import type { Effect, PaymentEvent } from './read-event.ts'
import { findSubscribedOrganization, listActivePrices, saveSubscription } from './report-store.ts'
import { findSubscribedPlan } from './subscribed-plan.ts'

/** Waiting events that are applied when their customer becomes known; the next event applies the rest. */
const waitingMax = 500

/**
 * Applies an event once; the event and all that follows from it commit together. The order in which events
 * arrive makes no difference: payments count by their id, refunds by their sum, disputes and subscriptions by
 * their newest report, and an event whose organization is not known yet waits for it.
 */
export async function applyEvent(
  event: PaymentEvent,
  { db, ...deps }: ApplyDeps & { db: Db },
): Promise<{ outcome: StripeEventOutcome; problems: string[] }> {
  return transact(db, async (tx) => {
    await lockEvents(tx)
    if (!(await insertEvent(tx, event, deps.now()))) return { outcome: 'duplicate', problems: [] }
    const owner = await findOwner(tx, event)
    const { outcome, problem } = await applyAndStore(tx, event, owner, deps)
    const problems = [problem]
    if (event.customer !== null && owner.organizationId !== null) {
      for (const earlier of await findWaitingEvents(tx, event.customer, waitingMax)) {
        problems.push((await applyAndStore(tx, earlier, owner, deps)).problem)
      }
    }
    return { outcome, problems: problems.filter((each) => each !== undefined) }
  })
}

type Owner = { organizationId: string | null; isNewlyKnown: boolean; problem?: string }

/** The organization that the event names, or else the one that an earlier event named for the same customer. */
async function findOwner(
  tx: Tx,
  { namedOrganization: named, customer }: PaymentEvent,
): Promise<Owner> {
  const fault = named && (await findFault(tx, named))
  if (named?.organizationId && !fault) {
    const { organizationId } = named
    const isNewlyKnown = customer !== null && (await insertCustomer(tx, customer, organizationId))
    return { organizationId, isNewlyKnown }
  }
  // Metadata is the seller's: if it names no organization of ours, the customer's would be a wrong guess. A
  // client reference is the payer's and may be anything.
  const mayUseCustomer = customer !== null && named?.in !== 'metadata'
  const known = mayUseCustomer ? await findCustomerOrganization(tx, customer) : undefined
  if (known !== undefined) return { organizationId: known, isNewlyKnown: false }
  return { organizationId: null, isNewlyKnown: false, ...(fault && { problem: fault }) }
}

async function findFault(
  tx: Tx,
  { organizationId }: NamedOrganization,
): Promise<string | undefined> {
  if (organizationId === null) return 'metadata.organization_id is not the id of an organization'
  if (await findOrganization(tx, organizationId)) return undefined
  return `no organization has the id '${organizationId}'`
}

async function applyAndStore(tx: Tx, event: PaymentEvent, owner: Owner, deps: ApplyDeps) {
  const { outcome, problem } = await apply(tx, event, owner, deps)
  await setEventState(tx, event.id, { state: outcome, organizationId: owner.organizationId })
  return { outcome, ...(problem && { problem: `${event.type} ${event.id}: ${problem}` }) }
}

async function apply(
  tx: Tx,
  event: PaymentEvent,
  owner: Owner,
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const { effect } = event
  switch (effect.kind) {
    case 'nothing':
      return applyNothing(effect, owner)
    case 'link':
      return addLinks(tx, effect.links, deps)
    case 'refund':
    case 'failed_refund':
    case 'dispute':
      return applyChargeReport(tx, effect, event.createdAt, deps)
    case 'payment': {
      const { problem } = await addLinks(tx, effect.links, deps)
      if (owner.organizationId === null) return applyWithoutOwner(event, owner)
      const result = await applyPayment(tx, effect, owner.organizationId, deps)
      return problem ? { problem, ...result } : result
    }
    case 'subscription':
      if (owner.organizationId === null) return applyWithoutOwner(event, owner)
      return applySubscription(tx, { ...effect, asOf: event.createdAt }, owner.organizationId, deps)
  }
}

function applyNothing(
  { why, isProblem }: Extract<Effect, { kind: 'nothing' }>,
  owner: Owner,
): ApplyResult {
  const problem = isProblem ? why : owner.problem
  return { outcome: owner.isNewlyKnown ? 'applied' : 'ignored', ...(problem && { problem }) }
}

/** A later event may name the customer's organization. Without a customer none can. */
function applyWithoutOwner(
  { customer, namedOrganization }: PaymentEvent,
  { problem }: Owner,
): ApplyResult {
  const isWaiting = customer !== null && namedOrganization?.in !== 'metadata'
  if (isWaiting) return { outcome: 'waiting', ...(problem && { problem }) }
  const neither = 'it names neither an organization nor a customer'
  return { outcome: 'ignored', problem: problem ?? neither }
}

type ReportedSubscription = Extract<Effect, { kind: 'subscription' }> & { asOf: Date }

async function applySubscription(
  tx: Tx,
  reported: ReportedSubscription,
  organizationId: string,
  deps: ApplyDeps,
): Promise<ApplyResult> {
  const { prices, isActive, subscription } = reported
  const before = await findSubscribedOrganization(tx, subscription)
  await saveSubscription(tx, { ...reported, organizationId })
  const concerned = [...new Set([organizationId, before ?? organizationId])].toSorted()
  // From all subscriptions and the configured prices, which may have changed since the last event.
  for (const id of concerned) {
    const plan = findSubscribedPlan(await listActivePrices(tx, id), deps.plans)
    await changePlan(tx, id, { subscribed_plan: plan }, deps)
  }
  const givesNoPlan = isActive && !prices.some((price) => deps.plans.has(price))
  const problem = `STRIPE_PLANS lists no price of ${subscription}: ${prices.slice(0, 10).join(', ')}`
  return { ...applied, ...(givesNoPlan && { problem }) }
}
