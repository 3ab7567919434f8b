import type { StripeEventOutcome } from '@gatehouse/contract/webhook'

import { findOrganization } from '#access/organizations/organization-store.ts'
import { changePlan } from '#access/organizations/tier.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import { type Applied, type ApplyTools, done } from './applied.ts'
import { addLinks, applyPayment, applyRefund } from './apply-payment.ts'
import {
  findOrganizationOf,
  findWaiting,
  insertCustomer,
  insertEvent,
  lockEvents,
  setEventState,
} from './event-store.ts'
import { planOf } from './plan-of.ts'
import type { Effect, PaymentEvent } from './read-event.ts'
import { activePrices, findSubscriber, saveSubscription } from './report-store.ts'
import type { Named } from './shapes.ts'

/** Of a customer who becomes known; more would be applied with its next event. */
const waitingMax = 500

/**
 * Applies an event once. The event and all it leads to commit together. What it says is kept so that
 * the order in which events come makes no difference: payments by their reference, refunds by their sum,
 * subscriptions by their newest report, and whatever belongs to nobody yet until its owner is known.
 */
export async function applyEvent(
  event: PaymentEvent,
  { db, ...tools }: ApplyTools & { db: Db },
): Promise<{ outcome: StripeEventOutcome; problems: string[] }> {
  return transact(db, async (tx) => {
    await lockEvents(tx)
    if (!(await insertEvent(tx, event, tools.now()))) return { outcome: 'duplicate', problems: [] }
    const owner = await findOwner(tx, event)
    const { outcome, problem } = await settle(tx, event, owner, tools)
    const problems = [problem]
    if (event.customer !== null && owner.organizationId !== null) {
      for (const earlier of await findWaiting(tx, event.customer, waitingMax)) {
        problems.push((await settle(tx, earlier, owner, tools)).problem)
      }
    }
    return { outcome, problems: problems.filter((each) => each !== undefined) }
  })
}

type Owner = { organizationId: string | null; isNewlyKnown: boolean; problem?: string }

/** By the event's own words, else by those of an earlier event about the same customer. */
async function findOwner(tx: Tx, { named, customer }: PaymentEvent): Promise<Owner> {
  const fault = named && (await faultOf(tx, named))
  if (named?.organizationId && !fault) {
    const { organizationId } = named
    const isNewlyKnown = customer !== null && (await insertCustomer(tx, customer, organizationId))
    return { organizationId, isNewlyKnown }
  }
  // The seller meant somebody else then; what the payer wrote may be anything.
  const canBeTheCustomers = customer !== null && named?.in !== 'metadata'
  const known = canBeTheCustomers ? await findOrganizationOf(tx, customer) : undefined
  if (known !== undefined) return { organizationId: known, isNewlyKnown: false }
  return { organizationId: null, isNewlyKnown: false, ...(fault && { problem: fault }) }
}

async function faultOf(tx: Tx, { organizationId }: Named): Promise<string | undefined> {
  if (organizationId === null) return 'metadata.organization_id is not the id of an organization'
  if (await findOrganization(tx, organizationId)) return undefined
  return `no organization has the id '${organizationId}'`
}

async function settle(tx: Tx, event: PaymentEvent, owner: Owner, tools: ApplyTools) {
  const { outcome, problem } = await apply(tx, event, owner, tools)
  await setEventState(tx, event.id, { state: outcome, organizationId: owner.organizationId })
  return { outcome, ...(problem && { problem: `${event.type} ${event.id}: ${problem}` }) }
}

async function apply(
  tx: Tx,
  event: PaymentEvent,
  owner: Owner,
  tools: ApplyTools,
): Promise<Applied> {
  const { effect } = event
  switch (effect.kind) {
    case 'nothing':
      return applyNothing(effect, owner)
    case 'link':
      return addLinks(tx, effect.links, tools)
    case 'refund':
      return applyRefund(tx, effect, tools)
    case 'payment': {
      const { problem } = await addLinks(tx, effect.links, tools)
      if (owner.organizationId === null) return ownerless(event, owner)
      const applied = await applyPayment(tx, effect, owner.organizationId, tools)
      return problem ? { problem, ...applied } : applied
    }
    case 'subscription':
      if (owner.organizationId === null) return ownerless(event, owner)
      return applySubscription(
        tx,
        { ...effect, asOf: event.createdAt },
        owner.organizationId,
        tools,
      )
  }
}

function applyNothing(
  { why, isProblem }: Extract<Effect, { kind: 'nothing' }>,
  owner: Owner,
): Applied {
  const problem = isProblem ? why : owner.problem
  return { outcome: owner.isNewlyKnown ? 'applied' : 'ignored', ...(problem && { problem }) }
}

/** A customer may be named later; somebody without one never will be. */
function ownerless({ customer, named }: PaymentEvent, { problem }: Owner): Applied {
  const isWaiting = customer !== null && named?.in !== 'metadata'
  if (isWaiting) return { outcome: 'waiting', ...(problem && { problem }) }
  const neither = 'it names neither an organization nor a customer'
  return { outcome: 'ignored', problem: problem ?? neither }
}

type Reported = Extract<Effect, { kind: 'subscription' }> & { asOf: Date }

async function applySubscription(
  tx: Tx,
  reported: Reported,
  organizationId: string,
  tools: ApplyTools,
): Promise<Applied> {
  const { prices, isActive, subscription } = reported
  const before = await findSubscriber(tx, subscription)
  await saveSubscription(tx, { ...reported, organizationId })
  const concerned = [...new Set([organizationId, before ?? organizationId])].toSorted()
  // Of all its subscriptions and by today's prices: what these give may have changed since the last event.
  for (const id of concerned) {
    const plan = planOf(await activePrices(tx, id), tools.plans)
    await changePlan(tx, id, { subscribed_plan: plan }, tools)
  }
  const givesNone = isActive && !prices.some((price) => tools.plans.has(price))
  const problem = `STRIPE_PLANS has no price of ${subscription}: ${prices.slice(0, 10).join(', ')}`
  return { ...done, ...(givesNone && { problem }) }
}
