import { expect, test } from 'vitest'

import { readInvoiceAmounts, readSessionAmounts } from './paid-amounts.ts'

test.each([
  ['without details', undefined, 2400],
  ['without tax', { amount_tax: 0, amount_shipping: null }, 2400],
  ['with tax', { amount_tax: 400 }, 2000],
  ['with tax and shipping', { amount_tax: 400, amount_shipping: 500 }, 1500],
  ['of tax and shipping alone', { amount_tax: 2000, amount_shipping: 500 }, 0],
])('a session %s', (_, total_details, credited) => {
  expect(readSessionAmounts({ amount_total: 2400, total_details })).toEqual({
    chargedCents: 2400,
    creditedMicroUsd: credited * 10_000,
  })
})

test.each([
  ['without anything about tax', {}, 2400],
  ['without tax', { total: 2400, total_excluding_tax: 2400, total_taxes: [] }, 2400],
  ['that states its total without tax', { total: 2400, total_excluding_tax: 2000, tax: 1 }, 2000],
  ['that lists its taxes', { total: 2400, total_taxes: [{ amount: 300 }, { amount: 100 }] }, 2000],
  ['until 2025-03-31', { total: 2400, tax: 400 }, 2000],
  ['until 2025-03-31, with a list', { total: 2400, total_tax_amounts: [{ amount: 400 }] }, 2000],
  [
    'with shipping',
    { total: 2400, total_excluding_tax: 2000, shipping_cost: { amount_subtotal: 500 } },
    1500,
  ],
  ['half paid from a balance', { total: 4800, total_excluding_tax: 4000 }, 2000],
  ['that includes an older debt', { total: 1200, total_excluding_tax: 1000 }, 2000],
  ['of an older debt alone', { total: 0, total_excluding_tax: 0 }, 2400],
  ['with a negative total', { total: -100, total_excluding_tax: -80 }, 2400],
  ['with a negative tax', { total: 2400, tax: -100 }, 2400],
])('an invoice %s', (_, amounts, credited) => {
  expect(readInvoiceAmounts({ amount_paid: 2400, ...amounts })).toEqual({
    chargedCents: 2400,
    creditedMicroUsd: credited * 10_000,
  })
})

test('a share of the largest invoice is exact, down to a fraction of a cent', () => {
  const total = 100_000_000_000
  const paid = { amount_paid: total, total, total_excluding_tax: total - 1 }
  expect(readInvoiceAmounts(paid).creditedMicroUsd).toBe((total - 1) * 10_000)
  const third = { amount_paid: 100, total: 300, total_excluding_tax: 200 }
  expect(readInvoiceAmounts(third).creditedMicroUsd).toBe(666_666)
})
