import { StripeEvent } from '@gatehouse/contract/webhook'
import { z } from 'zod'

import { validate } from '#http/validate.ts'

import type { StripeMode } from './settings.ts'
import { Charge, Invoice, InvoicePayment, type Named, Session, Subscription } from './shapes.ts'

/** Which payment intent has paid which invoice: refunds name the one, payments the other. */
export type Link = { paymentIntent: string; invoice: string }

export type Effect =
  | { kind: 'payment'; reference: string; microUsd: number; links: Link[] }
  | { kind: 'link'; links: Link[] }
  /** How much of the charge was refunded in all, not just now. */
  | {
      kind: 'refund'
      charge: string
      paymentIntent: string | null
      invoice: string | null
      microUsd: number
    }
  | {
      kind: 'subscription'
      subscription: string
      /** Ids of prices and of their products. */
      prices: string[]
      isActive: boolean
      isEnded: boolean
      /** Decides between two reports of the same second: the greater is the later. */
      tie: string
    }
  /** `isProblem`: somebody has paid and it cannot be counted, or it should not have been sent. */
  | { kind: 'nothing'; why: string; isProblem?: true }

export type PaymentEvent = {
  id: string
  type: string
  createdAt: Date
  customer: string | null
  named: Named | null
  effect: Effect
}

type Read = Pick<PaymentEvent, 'customer' | 'named' | 'effect'>

/** What an event says. Throws a 422 where an event that matters cannot be understood: Stripe tries again. */
export function readEvent(json: unknown, mode: StripeMode): PaymentEvent {
  const event = validate(StripeEvent, 'body', json)
  const { id, type, created } = event
  const read = <Shape extends z.ZodType>(shape: Shape) => {
    const whole = z.object({ data: z.object({ object: shape }) })
    const { data } = validate(whole, 'body', json) as { data: { object: z.output<Shape> } }
    return data.object
  }
  const base = { id, type, createdAt: new Date(created * 1000) }
  const why = whyForeign(event, mode)
  if (why) return { ...base, ...ofNobody({ kind: 'nothing', why, isProblem: true }) }
  switch (type) {
    case 'checkout.session.completed':
    case 'checkout.session.async_payment_succeeded':
      return { ...base, ...readSession(read(Session)) }
    case 'invoice.paid':
      return { ...base, ...readInvoice(read(Invoice)) }
    case 'invoice_payment.paid':
      return { ...base, ...readInvoicePayment(read(InvoicePayment)) }
    case 'charge.refunded':
      return { ...base, ...readCharge(read(Charge)) }
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
      return { ...base, ...readSubscription(read(Subscription), base) }
    default:
      return { ...base, ...ofNobody(nothing('not of our types')) }
  }
}

/** Test money buys nothing, and what others earn by our platform is not ours. */
function whyForeign({ livemode, account }: StripeEvent, mode: StripeMode): string | undefined {
  if (livemode !== (mode === 'live')) return `it is not of the mode ${mode} (STRIPE_MODE)`
  return account === undefined || account === null ? undefined : 'it is of a connected account'
}

const ofNobody = (effect: Effect): Read => ({ customer: null, named: null, effect })

const nothing = (why: string): Effect => ({ kind: 'nothing', why })

/** Cents are ten thousand micro-USD each. Other currencies have no fixed price in credits. */
function inUsd(
  { currency, cents }: { currency: string | null | undefined; cents: number },
  effectOf: (microUsd: number) => Effect,
): Effect {
  if (cents === 0) return nothing('the amount is zero')
  if (currency?.toLowerCase() === 'usd') return effectOf(cents * 10_000)
  return { kind: 'nothing', why: `the currency is ${currency}, not usd`, isProblem: true }
}

function readSession(session: z.infer<typeof Session>): Read {
  const { customer, metadata, client_reference_id } = session
  return { customer, named: metadata ?? client_reference_id, effect: effectOfSession(session) }
}

function effectOfSession(session: z.infer<typeof Session>): Effect {
  const { id, mode, payment_intent, invoice, invoice_creation, payment_status } = session
  // Its invoice reports the payment: counted here as well, it would count twice.
  if (mode === 'subscription' || invoice !== null || invoice_creation?.enabled) {
    return nothing('it is paid by invoice')
  }
  if (mode !== 'payment') return nothing('it takes no payment')
  if (payment_status !== 'paid') return nothing('it is not paid yet')
  const reference = payment_intent ?? id
  return inUsd({ currency: session.currency, cents: session.amount_total ?? 0 }, (microUsd) => ({
    ...{ kind: 'payment', reference, microUsd, links: [] },
  }))
}

function readInvoice(invoice: z.infer<typeof Invoice>): Read {
  const { id, customer, currency, amount_paid, payment_intent, payments, parent } = invoice
  const paidBy = (payments?.data ?? []).map(({ payment }) => payment?.payment_intent ?? null)
  const links = linksOf(id, [payment_intent, ...paidBy])
  const places = [parent?.subscription_details, invoice.subscription_details, invoice]
  const named = places.map((place) => place?.metadata ?? null)
  return {
    customer,
    named: named.find((each) => each !== null) ?? null,
    effect: inUsd({ currency, cents: amount_paid }, (microUsd) => ({
      ...{ kind: 'payment', reference: id, microUsd, links },
    })),
  }
}

function readInvoicePayment({ invoice, payment }: z.infer<typeof InvoicePayment>): Read {
  const links = invoice === null ? [] : linksOf(invoice, [payment?.payment_intent ?? null])
  const effect = links.length > 0 ? ({ kind: 'link', links } as const) : nothing('it links nothing')
  return ofNobody(effect)
}

const linksOf = (invoice: string, paymentIntents: readonly (string | null)[]): Link[] =>
  [...new Set(paymentIntents)]
    .filter((paymentIntent) => paymentIntent !== null)
    .map((paymentIntent) => ({ paymentIntent, invoice }))

function readCharge(charge: z.infer<typeof Charge>): Read {
  const { id, customer, currency, amount_refunded, metadata, payment_intent, invoice } = charge
  return {
    customer,
    named: metadata,
    effect: inUsd({ currency, cents: amount_refunded }, (microUsd) => ({
      ...{ kind: 'refund', charge: id, paymentIntent: payment_intent, invoice, microUsd },
    })),
  }
}

/** Somebody who is late with a payment keeps the plan until Stripe gives up. */
const activeStatuses = new Set(['active', 'trialing', 'past_due'])
const order = ['customer.subscription.created', 'customer.subscription.updated']

function readSubscription(
  { id, customer, status, metadata, items }: z.infer<typeof Subscription>,
  event: { id: string; type: string },
): Read {
  const isEnded = event.type === 'customer.subscription.deleted'
  const isActive = !isEnded && activeStatuses.has(status)
  const prices = items.data.flatMap(({ price, plan }) => [
    ...[price?.id, price?.product, plan?.id, plan?.product],
  ])
  const effect = {
    kind: 'subscription',
    subscription: id,
    prices: [...new Set(prices)].filter((price) => typeof price === 'string'),
    ...{ isActive, isEnded },
    tie: [order.indexOf(event.type), Number(isActive), event.id].join(' '),
  } as const
  return { customer, named: metadata, effect }
}
