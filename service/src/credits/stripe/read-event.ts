import { StripeEvent } from '@gatehouse/contract/webhook'
import { z } from 'zod'

import { creditsPerUsCent } from '#credits/money.ts'
import { validate } from '#http/validate.ts'

import {
  Charge,
  Dispute,
  Invoice,
  InvoicePayment,
  type NamedOrganization,
  RefundObject,
  Session,
  Subscription,
} from './event-schemas.ts'
import { type PaidAmounts, readInvoiceAmounts, readSessionAmounts } from './paid-amounts.ts'
import type { StripeMode } from './settings.ts'

/** Which payment intent has paid which invoice: refunds name the former, payments the latter. */
export type PaymentLink = { paymentIntent: string; invoice: string }

/** A charge of which the payer has taken something back, and the payment it is of. */
type Charged = { charge: string; paymentIntent: string | null; invoice: string | null }

/** What an event leads to. Stored with the event, so old events must stay readable. */
export type Effect =
  | {
      kind: 'payment'
      reference: string
      /** What buys credits. */
      microUsd: number
      /** With tax and shipping. Older events do not have it. */
      chargedMicroUsd?: number
      links: PaymentLink[]
    }
  | { kind: 'link'; links: PaymentLink[] }
  /** `microUsd` is the sum of all refunds of the charge, not the newest one. */
  | ({ kind: 'refund'; microUsd: number } & Charged)
  | ({ kind: 'failed_refund'; refund: string; microUsd: number } & Charged)
  /** `isWon`: the payer does not get the money. */
  | ({
      kind: 'dispute'
      dispute: string
      microUsd: number
      isEnded: boolean
      isWon: boolean
    } & Charged)
  | {
      kind: 'subscription'
      subscription: string
      /** Ids of prices and of their products. */
      prices: string[]
      isActive: boolean
      isEnded: boolean
      /** Of two reports of the same second the one with the greater tie counts as the later. */
      tie: string
    }
  /** `isProblem`: a payment that cannot be counted, or an event that should not have been sent to us. */
  | { kind: 'nothing'; why: string; isProblem?: true }

export type ChargeEffect = Extract<Effect, { kind: 'refund' | 'failed_refund' | 'dispute' }>

export type PaymentEvent = {
  id: string
  type: string
  createdAt: Date
  customer: string | null
  namedOrganization: NamedOrganization | null
  effect: Effect
}

type EventContent = Pick<PaymentEvent, 'customer' | 'namedOrganization' | 'effect'>

/** Throws a 422 if an event of our types cannot be understood, so that Stripe sends it again. */
export function readEvent(json: unknown, mode: StripeMode): PaymentEvent {
  const event = validate(StripeEvent, 'body', json)
  const { id, type, created } = event
  const read = <Shape extends z.ZodType>(shape: Shape) => {
    const whole = z.object({ data: z.object({ object: shape }) })
    const { data } = validate(whole, 'body', json) as { data: { object: z.output<Shape> } }
    return data.object
  }
  const base = { id, type, createdAt: new Date(created * 1000) }
  const why = whyNotOurs(event, mode)
  if (why) return { ...base, ...withoutCustomer({ kind: 'nothing', why, isProblem: true }) }
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
    case 'refund.failed':
    case 'refund.updated':
    case 'charge.refund.updated':
      return { ...base, ...withoutCustomer(readRefund(read(RefundObject))) }
    case 'charge.dispute.created':
    case 'charge.dispute.closed':
      return { ...base, ...withoutCustomer(readDispute(read(Dispute), type)) }
    case 'customer.subscription.created':
    case 'customer.subscription.updated':
    case 'customer.subscription.deleted':
      return { ...base, ...readSubscription(read(Subscription), base) }
    default:
      return { ...base, ...withoutCustomer(nothing('its type is not one of ours')) }
  }
}

/** Payments of the other mode and of connected accounts buy no credits. */
function whyNotOurs({ livemode, account }: StripeEvent, mode: StripeMode): string | undefined {
  if (livemode !== (mode === 'live')) return `it is not in ${mode} mode (STRIPE_MODE)`
  return account === undefined || account === null ? undefined : 'it belongs to a connected account'
}

const withoutCustomer = (effect: Effect): EventContent => ({
  customer: null,
  namedOrganization: null,
  effect,
})

const nothing = (why: string): Effect => ({ kind: 'nothing', why })

/** Only US dollars have a fixed price in credits. */
function effectInUsd(
  { currency, cents }: { currency: string | null | undefined; cents: number },
  toEffect: (microUsd: number) => Effect,
): Effect {
  if (cents === 0) return nothing('the amount is zero')
  if (currency?.toLowerCase() === 'usd') return toEffect(cents * creditsPerUsCent)
  return { kind: 'nothing', why: `the currency is ${currency}, not usd`, isProblem: true }
}

function readSession(session: z.infer<typeof Session>): EventContent {
  const { customer, metadata, client_reference_id } = session
  return {
    customer,
    namedOrganization: metadata ?? client_reference_id,
    effect: readSessionEffect(session),
  }
}

function readSessionEffect(session: z.infer<typeof Session>): Effect {
  const { id, mode, payment_intent, invoice, invoice_creation, payment_status } = session
  // The invoice reports the same payment, under its own id.
  if (mode === 'subscription' || invoice !== null || invoice_creation?.enabled) {
    return nothing('it is paid by invoice')
  }
  if (mode !== 'payment') return nothing('it takes no payment')
  if (payment_status !== 'paid') return nothing('it is not paid yet')
  const payment = { reference: payment_intent ?? id, links: [] }
  return readPayment(session.currency, readSessionAmounts(session), payment)
}

function readPayment(
  currency: string | null | undefined,
  { chargedCents, creditedMicroUsd }: PaidAmounts,
  payment: { reference: string; links: PaymentLink[] },
): Effect {
  return effectInUsd({ currency, cents: chargedCents }, (chargedMicroUsd) =>
    creditedMicroUsd > 0
      ? { kind: 'payment', ...payment, microUsd: creditedMicroUsd, chargedMicroUsd }
      : nothing('it is all tax or shipping'),
  )
}

function readInvoice(invoice: z.infer<typeof Invoice>): EventContent {
  const { id, customer, currency, payment_intent, payments, parent } = invoice
  const paidBy = (payments?.data ?? []).map(({ payment }) => payment?.payment_intent ?? null)
  const links = buildLinks(id, [payment_intent, ...paidBy])
  const sources = [parent?.subscription_details, invoice.subscription_details, invoice]
  const named = sources.map((source) => source?.metadata ?? null)
  return {
    customer,
    namedOrganization: named.find((each) => each !== null) ?? null,
    effect: readPayment(currency, readInvoiceAmounts(invoice), { reference: id, links }),
  }
}

function readInvoicePayment({ invoice, payment }: z.infer<typeof InvoicePayment>): EventContent {
  const links = invoice === null ? [] : buildLinks(invoice, [payment?.payment_intent ?? null])
  const effect = links.length > 0 ? ({ kind: 'link', links } as const) : nothing('it links nothing')
  return withoutCustomer(effect)
}

const buildLinks = (invoice: string, paymentIntents: readonly (string | null)[]): PaymentLink[] =>
  [...new Set(paymentIntents)]
    .filter((paymentIntent) => paymentIntent !== null)
    .map((paymentIntent) => ({ paymentIntent, invoice }))

function readCharge(charge: z.infer<typeof Charge>): EventContent {
  const { id, customer, currency, amount_refunded, metadata, payment_intent, invoice } = charge
  return {
    customer,
    namedOrganization: metadata,
    effect: effectInUsd({ currency, cents: amount_refunded }, (microUsd) => ({
      kind: 'refund',
      charge: id,
      paymentIntent: payment_intent,
      invoice,
      microUsd,
    })),
  }
}

/** Of other refunds the charge reports the sum. */
function readRefund(refund: z.infer<typeof RefundObject>): Effect {
  const { id, status, charge, currency, amount, payment_intent: paymentIntent } = refund
  if (status !== 'failed' && status !== 'canceled') return nothing('the refund has not failed')
  if (charge === null) return withoutCharge
  return effectInUsd({ currency, cents: amount }, (microUsd) => ({
    kind: 'failed_refund',
    refund: id,
    charge,
    paymentIntent,
    invoice: null,
    microUsd,
  }))
}

const withoutCharge: Effect = { kind: 'nothing', why: 'it names no charge', isProblem: true }

/** `warning_closed`: the payer's bank has asked, and taken nothing. */
const wonStatuses = new Set(['won', 'warning_closed'])

function readDispute(dispute: z.infer<typeof Dispute>, type: string): Effect {
  const { id, status, charge, currency, amount, payment_intent: paymentIntent } = dispute
  if (charge === null) return withoutCharge
  return effectInUsd({ currency, cents: amount }, (microUsd) => ({
    kind: 'dispute',
    dispute: id,
    charge,
    paymentIntent,
    invoice: null,
    microUsd,
    isEnded: type === 'charge.dispute.closed',
    isWon: wonStatuses.has(status),
  }))
}

/** A subscription with a late payment keeps its plan until Stripe gives up. */
const activeStatuses = new Set(['active', 'trialing', 'past_due'])
const updateOrder = ['customer.subscription.created', 'customer.subscription.updated']

function readSubscription(
  { id, customer, status, metadata, items }: z.infer<typeof Subscription>,
  event: { id: string; type: string },
): EventContent {
  const isEnded = event.type === 'customer.subscription.deleted'
  const isActive = !isEnded && activeStatuses.has(status)
  const prices = items.data.flatMap(({ price, plan }) => [
    price?.id,
    price?.product,
    plan?.id,
    plan?.product,
  ])
  const effect = {
    kind: 'subscription',
    subscription: id,
    prices: [...new Set(prices)].filter((price) => typeof price === 'string'),
    isActive,
    isEnded,
    tie: [updateOrder.indexOf(event.type), Number(isActive), event.id].join(' '),
  } as const
  return { customer, namedOrganization: metadata, effect }
}
