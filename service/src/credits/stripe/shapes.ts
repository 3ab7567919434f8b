import { z } from 'zod'

// What is read of Stripe's objects, by every version of its API that still sends events. Unknown members
// are passed over; a known one of the wrong type is an error, because money must not be misread.

/** Ids of Stripe. An event's own, and every id we make from one, fits the 200 characters of ours. */
const idMaxLength = 180
const Id = z
  .string()
  .max(idMaxLength)
  .regex(/^[!-~]+$/, { error: 'must be of printable characters without spaces' })
/** An object of its own stands for its id when it was expanded. */
const Reference = z
  .union([Id, z.object({ id: Id }).transform(({ id }) => id)])
  .nullish()
  .transform((id) => id ?? null)
const Cents = z.int().min(0).max(100_000_000_000)
const Currency = z.string().regex(/^[a-z0-9]{1,10}$/i, { error: 'must be the code of a currency' })

/** Whom an event names itself. An id of null: something is there that no organization can have as its id. */
export type Named =
  | { in: 'metadata'; organizationId: string | null }
  | { in: 'client_reference_id'; organizationId: string }

/** Whatever else somebody keeps there is not ours to judge. */
const Metadata = z
  .object({ organization_id: z.unknown() })
  .nullish()
  .catch(null)
  .transform((metadata): Named | null => {
    if (metadata?.organization_id === undefined) return null
    const { data = null } = Id.safeParse(metadata.organization_id)
    return { in: 'metadata', organizationId: data }
  })
/** Often the payer's: what does not look like an id names nobody. */
const ClientReference = Id.nullish()
  .catch(null)
  .transform((organizationId): Named | null =>
    typeof organizationId === 'string' ? { in: 'client_reference_id', organizationId } : null,
  )
const SubscriptionDetails = z.object({ metadata: Metadata }).nullish()
const PaidBy = z.object({ payment_intent: Reference }).nullish()

export const Session = z.object({
  id: Id,
  mode: z.string().max(50),
  payment_status: z.string().max(50),
  currency: Currency.nullish(),
  amount_total: Cents.nullish(),
  customer: Reference,
  client_reference_id: ClientReference,
  metadata: Metadata,
  payment_intent: Reference,
  invoice: Reference,
  invoice_creation: z.object({ enabled: z.boolean() }).nullish(),
})

export const Invoice = z.object({
  id: Id,
  customer: Reference,
  currency: Currency,
  amount_paid: Cents,
  metadata: Metadata,
  payment_intent: Reference, // until 2025-03-31
  payments: z.object({ data: z.array(z.object({ payment: PaidBy })).max(100) }).nullish(),
  subscription_details: SubscriptionDetails, // until 2025-03-31
  parent: z.object({ subscription_details: SubscriptionDetails }).nullish(),
})

export const InvoicePayment = z.object({ invoice: Reference, payment: PaidBy })

export const Charge = z.object({
  id: Id,
  customer: Reference,
  currency: Currency,
  amount_refunded: Cents,
  metadata: Metadata,
  payment_intent: Reference,
  invoice: Reference, // until 2025-03-31
})

const Price = z.object({ id: Id, product: Reference }).nullish()

export const Subscription = z.object({
  id: Id,
  customer: Reference,
  status: z.string().max(50),
  metadata: Metadata,
  items: z.object({
    data: z.array(z.object({ price: Price, plan: Price })).max(100),
  }),
})
