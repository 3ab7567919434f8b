import { z } from 'zod'

// What is read of Stripe's objects, by every version of its API that still sends events. Unknown members
// are passed over; a known one of the wrong type is an error, because money must not be misread.

const Id = z.string().min(1).max(200)
/** An object of its own stands for its id when it was expanded. */
const Reference = z
  .union([Id, z.looseObject({ id: Id }).transform(({ id }) => id)])
  .nullish()
  .transform((id) => id ?? null)
const Cents = z.int().min(0).max(100_000_000_000)
const Currency = z.string().max(10)
/** Whatever else somebody keeps there is not ours to judge. */
const Metadata = z.looseObject({ organization_id: Id.optional() }).nullish().catch({})
const SubscriptionDetails = z.looseObject({ metadata: Metadata }).nullish()
const PaidBy = z.looseObject({ payment_intent: Reference }).nullish()

export const Session = z.looseObject({
  id: Id,
  mode: z.string().max(50),
  payment_status: z.string().max(50),
  currency: Currency.nullish(),
  amount_total: Cents.nullish(),
  customer: Reference,
  client_reference_id: Id.nullish().catch(null),
  metadata: Metadata,
  payment_intent: Reference,
  invoice: Reference,
  invoice_creation: z.looseObject({ enabled: z.boolean() }).nullish(),
})

export const Invoice = z.looseObject({
  id: Id,
  customer: Reference,
  currency: Currency,
  amount_paid: Cents,
  metadata: Metadata,
  payment_intent: Reference, // until 2025-03-31
  payments: z.looseObject({ data: z.array(z.looseObject({ payment: PaidBy })).max(100) }).nullish(),
  subscription_details: SubscriptionDetails, // until 2025-03-31
  parent: z.looseObject({ subscription_details: SubscriptionDetails }).nullish(),
})

export const InvoicePayment = z.looseObject({ invoice: Reference, payment: PaidBy })

export const Charge = z.looseObject({
  id: Id,
  customer: Reference,
  currency: Currency,
  amount_refunded: Cents,
  metadata: Metadata,
  payment_intent: Reference,
  invoice: Reference, // until 2025-03-31
})

const Price = z.looseObject({ id: Id, product: Reference }).nullish()

export const Subscription = z.looseObject({
  id: Id,
  customer: Reference,
  status: z.string().max(50),
  metadata: Metadata,
  items: z.looseObject({
    data: z.array(z.looseObject({ price: Price, plan: Price })).max(100),
  }),
})
