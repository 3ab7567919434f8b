import { z } from 'zod'

// The members of Stripe's objects that we read, in every version of its API that still sends events. Other
// members are ignored; one of these with the wrong type is an error, because money must not be misread.

/** Stripe's ids. Ids that we derive from them still fit into our 200 characters. */
const idMaxLength = 180
const Id = z
  .string()
  .max(idMaxLength)
  .regex(/^[!-~]+$/, { error: 'must be of printable characters without spaces' })
/** An id, or the object itself where Stripe has expanded it. */
const Reference = z
  .union([Id, z.object({ id: Id }).transform(({ id }) => id)])
  .nullish()
  .transform((id) => id ?? null)
const Cents = z.int().min(0).max(100_000_000_000)
/** Invoices with more credit than debit have negative totals. */
const SignedCents = z.int().min(-100_000_000_000).max(100_000_000_000)
const Currency = z.string().regex(/^[a-z0-9]{1,10}$/i, { error: 'must be the code of a currency' })

/** The organization that an event names. An id of null cannot be the id of any organization. */
export type NamedOrganization =
  | { in: 'metadata'; organizationId: string | null }
  | { in: 'client_reference_id'; organizationId: string }

/** The seller may keep anything else there. */
const Metadata = z
  .object({ organization_id: z.unknown() })
  .nullish()
  .catch(null)
  .transform((metadata): NamedOrganization | null => {
    if (metadata?.organization_id === undefined) return null
    const { data = null } = Id.safeParse(metadata.organization_id)
    return { in: 'metadata', organizationId: data }
  })
/** Payers can write it, so anything that does not look like an id is ignored. */
const ClientReference = Id.nullish()
  .catch(null)
  .transform((organizationId): NamedOrganization | null =>
    typeof organizationId === 'string' ? { in: 'client_reference_id', organizationId } : null,
  )
const SubscriptionDetails = z.object({ metadata: Metadata }).nullish()
const TaxAmounts = z
  .array(z.object({ amount: SignedCents }))
  .max(100)
  .nullish()
const PaidBy = z.object({ payment_intent: Reference }).nullish()

export const Session = z.object({
  id: Id,
  mode: z.string().max(50),
  payment_status: z.string().max(50),
  currency: Currency.nullish(),
  amount_total: Cents.nullish(),
  total_details: z
    .object({ amount_tax: Cents.nullish(), amount_shipping: Cents.nullish() })
    .nullish(),
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
  total: SignedCents.nullish(),
  total_excluding_tax: SignedCents.nullish(),
  total_taxes: TaxAmounts,
  tax: SignedCents.nullish(), // until 2025-03-31
  total_tax_amounts: TaxAmounts, // until 2025-03-31
  shipping_cost: z.object({ amount_subtotal: Cents }).nullish(),
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

export const RefundObject = z.object({
  id: Id,
  charge: Reference,
  payment_intent: Reference,
  currency: Currency,
  amount: Cents,
  status: z.string().max(50).nullish(),
})

export const Dispute = z.object({
  id: Id,
  charge: Reference,
  payment_intent: Reference,
  currency: Currency,
  amount: Cents,
  status: z.string().max(50),
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
