import { expect, test } from 'vitest'

import { type ChargeReports, computeRefund, sumTakenBack } from './taken-back.ts'

const at = (second: number) => new Date(second * 1000)
const refunded = (sum: bigint, second: number | null) => ({
  sum,
  asOf: second === null ? null : at(second),
})
const failed = (amount: bigint, second: number) => ({ amount, failedAt: at(second) })
const takenBack = (reports: Partial<ChargeReports>) =>
  sumTakenBack({ refunded: [], failedRefunds: [], disputes: [], ...reports })

test.each([
  ['nothing', [], [], 0n],
  ['the largest sum', [refunded(5n, 1), refunded(12n, 3), refunded(7n, 2)], [], 12n],
  ['a sum without the refund that failed since', [refunded(12n, 1)], [failed(12n, 2)], 0n],
  ['one that failed within the same second', [refunded(12n, 1)], [failed(12n, 1)], 0n],
  ['a sum of a refund after the failed one', [refunded(12n, 3)], [failed(20n, 2)], 12n],
  [
    'a refund that failed and was repeated',
    [refunded(20n, 1), refunded(20n, 3)],
    [failed(20n, 2)],
    20n,
  ],
  ['one of two that failed', [refunded(5n, 1), refunded(12n, 2)], [failed(5n, 3)], 7n],
  ['a failure without a report', [], [failed(5n, 3)], 0n],
  ['an old report, without those that failed', [refunded(12n, null)], [failed(5n, 1)], 7n],
])('refunds: %s', (_, reports, failedRefunds, expected) => {
  expect(takenBack({ refunded: reports, failedRefunds })).toBe(expected)
})

test('disputes count unless they are won', () => {
  const disputes = [
    { amount: 5n, isWon: false },
    { amount: 7n, isWon: true },
  ]
  expect(takenBack({ disputes, refunded: [refunded(1n, 1)] })).toBe(6n)
})

test.each([
  ['half of the charge is half of the credits', 12n, 0n, 10n],
  ['all of the charge is all of the credits', 24n, 0n, 20n],
  ['more than the charge is all of the credits', 99n, 0n, 20n],
  ['what the operator has taken back is not taken again', 24n, 5n, 15n],
  ['a fraction of a credit is left', 1n, 0n, 0n],
])('%s', (_, taken, refundedByOthers, expected) => {
  const payment = { credited: 20n, charged: 24n, takenBack: taken, refundedByOthers }
  expect(computeRefund(payment)).toBe(expected)
})
