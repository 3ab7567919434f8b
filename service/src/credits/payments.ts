import {
  lockOrganization,
  type OrganizationRow,
  setOrganizationPaid,
} from '#access/organizations/organization-store.ts'
import { tierChange } from '#access/organizations/tier.ts'
import type { Announce } from '#audit/announce.ts'
import type { Actor } from '#audit/event.ts'
import type { Clock } from '#platform/clock.ts'
import type { Db, Tx } from '#platform/database.ts'
import { transact } from '#platform/transaction.ts'

import {
  type Account,
  findEntry,
  findPayment,
  findRefund,
  insertEntry,
  insertPayment,
  insertRefund,
  lockAccount,
  setPosted,
} from './post-store.ts'
import { findAliases } from './stripe/report-store.ts'
import { usdOf } from './usd.ts'

/** Money that came in or went out. `id` is that of its cause, within the organization: it counts once. */
export type Posting = { id: string; amount: bigint }
export type Refund = Posting & { paymentId: string }

/** The organization as it is now. A repetition has changed nothing. */
export type Posted = { organization: OrganizationRow; account: Account; isRepetition: boolean }

export type PostTools = { now: Clock; announce: Announce; by: Actor }
type Tools = PostTools & { db: Db }

/** What was asked contradicts what was recorded. Nothing was changed; the message says what to do. */
export class PostingRefused extends Error {}

// Each returns undefined when there is no such organization.

export const payIn = (organizationId: string, payment: Posting, tools: Tools) =>
  transact(tools.db, async (tx) => {
    await refuseOtherName(tx, organizationId, payment.id)
    return postPayment(tx, organizationId, payment, tools)
  })

export const grant = (organizationId: string, gift: Posting, tools: Tools) =>
  transact(tools.db, (tx) => postGrant(tx, organizationId, gift, tools))

export const refund = (organizationId: string, back: Refund, tools: Tools) =>
  transact(tools.db, (tx) => postRefund(tx, organizationId, back, tools))

/** Adds credits, and counts towards the tier. */
export async function postPayment(
  tx: Tx,
  organizationId: string,
  payment: Posting,
  { now, announce, by }: PostTools,
): Promise<Posted | undefined> {
  const found = await lock(tx, organizationId)
  if (!found || (await isRecorded(tx, organizationId, 'payment', payment))) return repeated(found)
  const { id, amount } = payment
  const account = await add(tx, found, 'topup', { ...payment, kind: 'payment', by })
  await insertPayment(tx, organizationId, { id, amount, recordedAt: now() })
  const paid = BigInt(found.organization.paid_micro_usd) + amount
  const organization = await setOrganizationPaid(tx, organizationId, paid)
  const facts = { payment_id: id, credits: Number(amount) }
  await announce(tx, { ...tierChange(found.organization, organization, by), facts })
  return { organization, account, isRepetition: false }
}

/** Adds credits that nobody paid for: they do not count towards the tier. */
async function postGrant(
  tx: Tx,
  organizationId: string,
  gift: Posting,
  { announce, by }: PostTools,
): Promise<Posted | undefined> {
  const found = await lock(tx, organizationId)
  if (!found || (await isRecorded(tx, organizationId, 'grant', gift))) return repeated(found)
  const account = await add(tx, found, 'promo', { ...gift, kind: 'grant', by })
  const after = { id: gift.id, object: 'credit_grant', credits: Number(gift.amount) }
  await announce(tx, { organizationId, by, action: 'created', before: null, after })
  return { ...found, account, isRepetition: false }
}

/**
 * Takes a payment back, or part of one: it does not count towards the tier any more, and its credits
 * go as far as they are there and not promised to calls under way. What was spent is written off.
 */
export async function postRefund(
  tx: Tx,
  organizationId: string,
  back: Refund,
  tools: PostTools,
): Promise<Posted | undefined> {
  const found = await lock(tx, organizationId)
  if (!found) return undefined
  const { id, amount, paymentId } = back
  if (await isRefunded(tx, organizationId, back)) return repeated(found)
  await refuseMoreThanPaid(tx, organizationId, back)
  const { posted, held } = found.account
  const available = posted > held ? posted - held : 0n
  const taken = amount < available ? amount : available
  const meta = { by: tools.by.id, payment_id: paymentId }
  const entry = { id, debit: 'wallet', credit: 'refund', kind: 'refund', meta } as const
  await insertEntry(tx, organizationId, { ...entry, amount: taken })
  if (taken < amount) {
    const lost = { ...entry, id: `${id}:writeoff`, debit: 'writeoff', kind: 'writeoff' } as const
    await insertEntry(tx, organizationId, { ...lost, amount: amount - taken })
  }
  await setPosted(tx, organizationId, posted - taken)
  await insertRefund(tx, organizationId, { id, amount, paymentId, recordedAt: tools.now() })
  const paid = BigInt(found.organization.paid_micro_usd) - amount
  const organization = await setOrganizationPaid(tx, organizationId, paid)
  const credits = { credits: Number(-taken), credits_written_off: Number(amount - taken) }
  const facts = { refund_id: id, payment_id: paymentId, ...credits }
  await tools.announce(tx, { ...tierChange(found.organization, organization, tools.by), facts })
  const account = { ...found.account, posted: posted - taken }
  return { organization, account, isRepetition: false }
}

type Found = { organization: OrganizationRow; account: Account }

/** Always in this order: the organization, its account, then the rest. */
async function lock(tx: Tx, organizationId: string): Promise<Found | undefined> {
  const organization = await lockOrganization(tx, organizationId)
  return organization && { organization, account: await lockAccount(tx, organizationId) }
}

const repeated = (found: Found | undefined): Posted | undefined =>
  found && { ...found, isRepetition: true }

/** Was exactly this posted before? */
async function isRecorded(
  tx: Tx,
  organizationId: string,
  kind: 'payment' | 'grant' | 'refund',
  { id, amount }: Posting,
): Promise<boolean> {
  refuseDerivedId(id)
  const entry = await findEntry(tx, organizationId, id)
  if (!entry) return false
  if (entry.kind !== kind) {
    throw new PostingRefused(
      `'${id}' was recorded before, as a ${entry.kind}. Give this ${kind} an id of its own.`,
    )
  }
  if (kind !== 'refund' && entry.amount !== amount) throw anotherAmount(kind, id, entry.amount)
  return true
}

async function isRefunded(tx: Tx, organizationId: string, back: Refund): Promise<boolean> {
  if (!(await isRecorded(tx, organizationId, 'refund', back))) return false
  const recorded = await findRefund(tx, organizationId, back.id)
  if (recorded?.paymentId !== back.paymentId) {
    throw new PostingRefused(
      `The refund '${back.id}' was recorded before, of the payment '${recorded?.paymentId}'. Give this refund an id of its own.`,
    )
  }
  if (recorded.amount !== back.amount) throw anotherAmount('refund', back.id, recorded.amount)
  return true
}

const anotherAmount = (kind: string, id: string, amount: bigint) =>
  new PostingRefused(
    `The ${kind} '${id}' was recorded before, with another amount: ${usdOf(amount)} USD. Repeat it with that amount, or give this ${kind} an id of its own.`,
  )

/** A payment provider has two names for some payments; each counts once all the same. */
async function refuseOtherName(tx: Tx, organizationId: string, id: string) {
  for (const alias of await findAliases(tx, id)) {
    if (!(await findPayment(tx, organizationId, alias))) continue
    throw new PostingRefused(`'${id}' is the payment '${alias}', which was recorded before.`)
  }
}

/** These endings are ours: a second movement of one cause. */
function refuseDerivedId(id: string) {
  const ending = [':writeoff', ':late'].find((each) => id.endsWith(each))
  if (ending) throw new PostingRefused(`An id cannot end with '${ending}'. Choose another one.`)
}

async function refuseMoreThanPaid(tx: Tx, organizationId: string, back: Refund) {
  const { paymentId, amount } = back
  const payment = await findPayment(tx, organizationId, paymentId)
  if (!payment) {
    throw new PostingRefused(
      `The organization '${organizationId}' has no payment '${paymentId}'. Record the payment first, or name another one.`,
    )
  }
  const left = payment.amount - payment.refunded
  if (amount <= left) return
  throw new PostingRefused(
    `Of the payment '${paymentId}' only ${usdOf(left)} USD can be refunded: ${usdOf(payment.amount)} USD were paid, ${usdOf(payment.refunded)} USD refunded before.`,
  )
}

type Coming = Posting & { kind: 'payment' | 'grant'; by: Actor }

/** Numbers in JSON are exact up to here; it is nine billion USD. */
const creditsMax = BigInt(Number.MAX_SAFE_INTEGER)

async function add(tx: Tx, found: Found, from: 'topup' | 'promo', coming: Coming) {
  const { id, amount, kind, by } = coming
  const { organization, account } = found
  const posted = account.posted + amount
  if (posted + account.used > creditsMax) {
    throw new PostingRefused(`With this ${kind} the balance would be more than can be counted.`)
  }
  const entry = { id, debit: from, credit: 'wallet', amount, kind, meta: { by: by.id } } as const
  await insertEntry(tx, organization.id, entry)
  await setPosted(tx, organization.id, posted)
  return { ...account, posted }
}
