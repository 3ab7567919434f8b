// What a payer has taken back of a payment, from reports that may arrive in any order. Amounts are in micro-USD.

/** What was reported about a charge. */
export type ChargeReports = {
  /** How much was refunded at a moment, without refunds that had failed by then. An old report has no moment. */
  refunded: readonly { sum: bigint; asOf: Date | null }[]
  failedRefunds: readonly { amount: bigint; failedAt: Date }[]
  disputes: readonly { amount: bigint; isWon: boolean }[]
}

/**
 * A report of refunds counts without those that have failed since; of several reports the largest counts. A
 * dispute takes its amount unless it is won.
 */
export function sumTakenBack({ refunded, failedRefunds, disputes }: ChargeReports): bigint {
  const sums = refunded.map(({ sum, asOf }) => {
    const failedSince = failedRefunds.filter(({ failedAt }) => asOf === null || failedAt >= asOf)
    return sum - sumAmounts(failedSince)
  })
  const refundedNow = sums.reduce((largest, sum) => (sum > largest ? sum : largest), 0n)
  return refundedNow + sumAmounts(disputes.filter(({ isWon }) => !isWon))
}

const sumAmounts = (items: readonly { amount: bigint }[]) =>
  items.reduce((sum, { amount }) => sum + amount, 0n)

/** Credits to take back: the same part of the credits as of what was charged, and never more than are left. */
export function computeRefund(payment: {
  credited: bigint
  /** With tax and shipping. */
  charged: bigint
  takenBack: bigint
  /** Credits that the operator has taken back. */
  refundedByOthers: bigint
}): bigint {
  const { credited, charged, takenBack, refundedByOthers } = payment
  const part = takenBack < charged ? takenBack : charged
  const credits = (credited * part) / charged
  const left = credited - refundedByOthers
  return credits < left ? credits : left
}
