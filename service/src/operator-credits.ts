import { findOrganization, type OrganizationRow } from '#access/organizations/organization-store.ts'
import type { Announce } from '#audit/announce.ts'
import { operator } from '#audit/event.ts'
import { toCount, toUsd } from '#credits/amounts-in-json.ts'
import { describeReport } from '#credits/describe-report.ts'
import { grant, payIn, type Posted, refund } from '#credits/payments.ts'
import { type Account, findAccount } from '#credits/post-store.ts'
import { reconcile } from '#credits/reconcile.ts'
import { tierOf } from '#limits/tiers.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db } from '#platform/database.ts'

import {
  type Given,
  readOrganizationId,
  readPosting,
  readRefund,
  UsageError,
} from './operator-arguments.ts'

type Tools = { db: Db; now: Clock; announce: Announce }

export async function paid(given: Given, tools: Tools) {
  const payment = readPosting('payment', given)
  return posted(given, await payIn(readOrganizationId(given), payment, byOperator(tools)))
}

export async function granted(given: Given, tools: Tools) {
  const gift = readPosting('grant', given)
  return posted(given, await grant(readOrganizationId(given), gift, byOperator(tools)))
}

/**
 * What a new organization begins with; whether it got that, where it was asked for. Its key is shown only
 * now: a failure here must not keep it back.
 */
export async function welcome(organizationId: string, amount: bigint, tools: Tools) {
  if (amount === 0n) return {}
  try {
    await grant(organizationId, { id: 'created', amount }, byOperator(tools))
    return { credits_granted: true }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    const again = `grant ${organizationId} --id created --usd …`
    process.stderr.write(`operator: It has no credits yet, try ${again}: ${why}\n`)
    return { credits_granted: false }
  }
}

export async function refunded(given: Given, tools: Tools) {
  const back = readRefund(given)
  return posted(given, await refund(readOrganizationId(given), back, byOperator(tools)))
}

export async function shown(given: Given, { db }: Tools) {
  const id = readOrganizationId(given)
  const organization = await findOrganization(db, id)
  const account = await findAccount(db, id)
  if (!organization || !account) throw noOrganization(id)
  return { ...presentWithPlans(organization), ...presentAccount(account) }
}

/** The topic `credits`. Differences are a failure for whoever runs it in a script. */
export async function runCreditCommand(command: string, organizationId: string, { db }: Tools) {
  if (command !== 'reconcile') throw new UsageError(`There is no command '${command}'.`)
  const report = await reconcile(db, organizationId === '' ? {} : { organizationId })
  const { text, exitCode } = describeReport(report)
  const { organizations, entries, differenceCount, differences } = report
  const listed = differences.map(({ organizationId: id, ...found }) => ({
    ...{ organization_id: id, ...found },
  }))
  const result = { organizations, entries, difference_count: differenceCount, differences: listed }
  return { result, text, exitCode }
}

const byOperator = (tools: Tools) => ({ ...tools, by: operator })

function posted(given: Given, result: Posted | undefined) {
  if (!result) throw noOrganization(given.organizationId)
  const { organization, account, isRepetition } = result
  return {
    ...{ ...presentOrganization(organization), ...presentAccount(account) },
    changed: !isRepetition,
  }
}

export const noOrganization = (id: string) => new Error(`No organization has the id '${id}'.`)

export function presentOrganization(row: OrganizationRow) {
  const paidMicroUsd = Number(row.paid_micro_usd)
  return {
    id: row.id,
    name: row.name,
    status: row.status,
    plan: row.plan,
    tier: tierOf({ plan: row.plan, paidMicroUsd }),
    paid_usd: paidMicroUsd / 1_000_000,
    created_at: row.created_at.toISOString(),
  }
}

/** The plan in force is the higher of the two. */
export const presentWithPlans = (row: OrganizationRow) => ({
  ...presentOrganization(row),
  operator_plan: row.operator_plan,
  subscribed_plan: row.subscribed_plan,
})

const presentAccount = ({ posted, used, held }: Account) => ({
  balance_credits: toCount(posted),
  balance_usd: toUsd(posted),
  held_credits: toCount(held),
  available_credits: toCount(posted - held),
  used_credits: toCount(used),
  used_usd: toUsd(used),
})
