import { operator } from '#audit/event.ts'
import { formatUsd } from '#credits/money.ts'
import {
  type BalanceChange,
  type Grant,
  grantCredits,
  type Payment,
  recordPayment,
  type Refund,
} from '#credits/payments/payments.ts'
import { refundPayment } from '#credits/payments/refunds.ts'
import { describeReport } from '#credits/reconcile/describe-report.ts'
import { reconcile } from '#credits/reconcile/reconcile.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'
import { noOrganization, presentAccount, presentOrganization } from './present.ts'

export const addPayment = async (organizationId: string, payment: Payment, deps: OperatorDeps) =>
  describeChange(organizationId, await recordPayment(organizationId, payment, byOperator(deps)))

export const addGrant = async (organizationId: string, grant: Grant, deps: OperatorDeps) =>
  describeChange(organizationId, await grantCredits(organizationId, grant, byOperator(deps)))

export const addRefund = async (organizationId: string, refund: Refund, deps: OperatorDeps) =>
  describeChange(organizationId, await refundPayment(organizationId, refund, byOperator(deps)))

/** Returns why the grant failed; undefined if it has not. */
export async function grantStartingCredits(
  organizationId: string,
  amount: bigint,
  deps: OperatorDeps,
): Promise<string | undefined> {
  try {
    await grantCredits(organizationId, { id: 'created', amount }, byOperator(deps))
    return undefined
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const retry = `organizations grant ${organizationId} --id created --usd ${formatUsd(amount)}`
    return `The organization was created, but its credits were not granted: ${why}\nTry again with: ${retry}`
  }
}

export async function reconcileLedger(
  organizationId: string,
  { db }: OperatorDeps,
): Promise<CommandOutput> {
  const report = await reconcile(db, organizationId === '' ? {} : { organizationId })
  const { text, exitCode } = describeReport(report)
  const { organizations, entries, differenceCount, differences } = report
  const listed = differences.map(({ organizationId: id, ...difference }) => ({
    organization_id: id,
    ...difference,
  }))
  const result = { organizations, entries, difference_count: differenceCount, differences: listed }
  return { result, text, exitCode }
}

const byOperator = (deps: OperatorDeps) => ({ ...deps, by: operator })

function describeChange(organizationId: string, change: BalanceChange | undefined): CommandOutput {
  if (!change) throw noOrganization(organizationId)
  const { organization, account, isRepetition } = change
  return {
    result: {
      ...presentOrganization(organization),
      ...presentAccount(account),
      changed: !isRepetition,
    },
  }
}
