import type { z } from 'zod'

import { creditsPerUsCent } from '#credits/money.ts'

import type { Invoice, Session } from './event-schemas.ts'

// Which part of a payment buys credits: all of it but tax and shipping.

/** In US cents; `credited` may have a fraction of one in micro-USD, so it is in those. */
export type PaidAmounts = { chargedCents: number; creditedMicroUsd: number }

export function readSessionAmounts({
  amount_total,
  total_details: details,
}: Pick<z.infer<typeof Session>, 'amount_total' | 'total_details'>): PaidAmounts {
  const chargedCents = amount_total ?? 0
  const notSold = (details?.amount_tax ?? 0) + (details?.amount_shipping ?? 0)
  const creditedCents = Math.max(0, chargedCents - notSold)
  return { chargedCents, creditedMicroUsd: creditedCents * creditsPerUsCent }
}

type InvoiceAmounts = Pick<
  z.infer<typeof Invoice>,
  | 'amount_paid'
  | 'total'
  | 'total_excluding_tax'
  | 'total_taxes'
  | 'tax'
  | 'total_tax_amounts'
  | 'shipping_cost'
>

/**
 * An invoice may be paid in part from the customer's balance, or include what was owed before. Then tax and
 * shipping are the same share of what was paid as of the total.
 */
export function readInvoiceAmounts(invoice: InvoiceAmounts): PaidAmounts {
  const { amount_paid: chargedCents, shipping_cost } = invoice
  const total = invoice.total ?? chargedCents
  const withoutTax = invoice.total_excluding_tax ?? total - sumTax(invoice)
  const sold = Math.min(total, Math.max(0, withoutTax - (shipping_cost?.amount_subtotal ?? 0)))
  const charged = BigInt(chargedCents) * BigInt(creditsPerUsCent)
  // Without a positive total nothing was taxed: an older debt was paid.
  const credited = total > 0 ? (charged * BigInt(sold)) / BigInt(total) : charged
  return { chargedCents, creditedMicroUsd: Number(credited) }
}

function sumTax({ total_taxes, tax, total_tax_amounts }: InvoiceAmounts): number {
  const sum = (taxes: readonly { amount: number }[]) =>
    taxes.reduce((total, { amount }) => total + amount, 0)
  if (total_taxes) return sum(total_taxes)
  return tax ?? sum(total_tax_amounts ?? [])
}
