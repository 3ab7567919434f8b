import type { Answered } from '@gatehouse/tools/scripted-upstream/call'

import type { Books, LedgerRow } from './books.ts'
import { creditsPerToken, nameOf } from './calls.ts'
import type { ClientCall } from './load.ts'

// Compares three independent logs: what clients received, what the upstream served, and what the ledger contains.
// Everything here is pure.

/** A grant that the operator command confirmed. */
export type Granted = { organizationId: string; id: string; credits: number }

export type Logs = {
  clientCalls: readonly ClientCall[]
  served: readonly Answered[]
  books: Books
  granted: readonly Granted[]
  /** Balances may be below zero. */
  isMetered?: boolean
}

/** The ledger entries of one call. */
type Bill = {
  name: string
  organizationId: string
  requestId: string
  usage: LedgerRow[]
  late: LedgerRow[]
  unknown: LedgerRow[]
  writtenOff: number
}

/** Each check with the calls that fail it. */
export type Findings = Record<(typeof checkNames)[number], string[]>

export const checkNames = [
  'charged twice',
  'acknowledged without a charge',
  'receipt differs from the charge',
  'charge differs from what was served',
  'served without a record',
  'charged but not served',
  'refused but served or charged',
  'without exactly one event',
  'booked between wrong accounts',
  'balance differs from the ledger',
  'still held',
  'daily totals differ from the ledger',
  'not granted exactly once',
] as const

/** The local count may count a short word as more than one token. */
const tokensPerWord = 2

export function compareLogs(logs: Logs): Findings {
  const { clientCalls, served, books, granted, isMetered = false } = logs
  const bills = billsOf(books.ledger)
  const byName = Map.groupBy(bills, ({ name }) => name)
  const servedByName = Map.groupBy(served, ({ key }) => key ?? 'without a name')
  return {
    'charged twice': bills.filter(isChargedTwice(byName)).map(describe),
    'acknowledged without a charge': clientCalls
      .filter((call) => call.receipt && !byName.get(nameOfCall(call))?.some(isCharged))
      .map(nameOfCall),
    'receipt differs from the charge': clientCalls.flatMap((call) => {
      const bill = byName.get(nameOfCall(call))?.find(isCharged)
      return bill ? whyReceiptWrong(call, bill, isMetered) : []
    }),
    'charge differs from what was served': bills.flatMap((bill) => {
      const answers = servedByName.get(bill.name)
      return answers ? whyChargedWrong(bill, answers) : []
    }),
    'served without a record': [...servedByName.keys()].filter((name) => !byName.has(name)),
    'charged but not served': bills
      .filter((bill) => costOf(bill) > 0 && !servedByName.has(bill.name))
      .map(describe),
    'refused but served or charged': clientCalls
      .filter(({ status }) => status >= 400)
      .map(nameOfCall)
      .filter(
        (name) => servedByName.has(name) || byName.get(name)?.some((bill) => costOf(bill) > 0),
      ),
    'without exactly one event': findWrongEvents(bills, books.events),
    'booked between wrong accounts': books.ledger.filter(isMisbooked).map(({ id }) => id),
    'balance differs from the ledger': findWrongBalances(books, isMetered),
    'still held': [
      ...(books.holds > 0 ? [`${books.holds} holds`] : []),
      ...books.accounts.filter(({ held }) => held !== 0).map((row) => row.organizationId),
    ],
    'daily totals differ from the ledger': findWrongDays(books),
    'not granted exactly once': granted
      .filter((grant) => !isGrantedOnce(grant, books.ledger))
      .map(({ id }) => id),
  }
}

const nameOfCall = ({ organizationId, model }: ClientCall) => nameOf(organizationId, model)
const describe = ({ name, requestId }: Bill) => `${name} ${requestId}`

/** Groups the entries by request; grants and payments belong to none. */
export function billsOf(ledger: readonly LedgerRow[]): Bill[] {
  const ofCalls = ledger.filter(({ kind }) =>
    ['usage', 'late_usage', 'void_unknown', 'writeoff'].includes(kind),
  )
  const requestOf = ({ id }: LedgerRow) => id.split(':', 1)[0] ?? ''
  const groups = Map.groupBy(ofCalls, (row) => `${row.organizationId} ${requestOf(row)}`)
  return [...groups.values()].map((rows) => {
    const { organizationId } = rows[0]!
    const ofKind = (kind: string) => rows.filter((row) => row.kind === kind)
    return {
      name: nameOf(organizationId, rows.find(({ model }) => model !== null)?.model ?? 'no model'),
      organizationId,
      requestId: requestOf(rows[0]!),
      usage: ofKind('usage'),
      late: ofKind('late_usage'),
      unknown: ofKind('void_unknown'),
      writtenOff: sumOf(ofKind('writeoff')),
    }
  })
}

const sumOf = (rows: readonly { amount: number }[]) =>
  rows.reduce((sum, { amount }) => sum + amount, 0)

const isCharged = ({ usage, late }: Bill) => usage.length + late.length > 0
const chargeOf = ({ usage, late }: Bill) => sumOf([...usage, ...late])
/** What the call would have cost with a sufficient balance. */
const costOf = (bill: Bill) => chargeOf(bill) + bill.writtenOff

/** A call has one bill, and a bill has one charge: on time, or late, after its hold was swept. */
const isChargedTwice = (byName: Map<string, Bill[]>) => (bill: Bill) => {
  const { usage, late, unknown, name } = bill
  const isOneCharge = usage.length + unknown.length === 1 && late.length <= unknown.length
  return !isOneCharge || byName.get(name)?.length !== 1
}

/**
 * A receipt without a balance was written before the charge, so it shows the full cost; a metered one never has a balance, so
 * it may show either. A client with a receipt has the whole answer, so the usage must be the upstream's own count.
 */
function whyReceiptWrong({ receipt }: ClientCall, bill: Bill, isMetered: boolean): string[] {
  if (!receipt) return []
  const charged = receipt.remaining === null && !isMetered ? costOf(bill) : chargeOf(bill)
  const isOfOutage = isMetered && receipt.credits === costOf(bill)
  const isCounted = [...bill.usage, ...bill.late].every(
    ({ usageSource }) => usageSource === 'upstream',
  )
  const isCharge = receipt.credits === charged || isOfOutage
  const isRight = isCounted && isCharge && (receipt.remaining ?? 0) >= 0
  return isRight ? [] : [`${describe(bill)} charged ${charged}, receipt ${JSON.stringify(receipt)}`]
}

const creditsFor = (input: number, output: number) =>
  input * creditsPerToken.input + output * creditsPerToken.output

/** Compares with the upstream's own count; for a call that was cut off, with the number of words written. */
function whyChargedWrong(bill: Bill, answers: readonly Answered[]): string[] {
  const row = bill.usage[0] ?? bill.late[0]
  if (!row) return []
  const { inputTokens: input, outputTokens: output, usageSource } = row
  const wrong = (what: string) => [`${describe(bill)} ${what}: ${input} + ${output} tokens`]
  if (input === null || output === null) return wrong('no tokens')
  if (costOf(bill) !== creditsFor(input, output)) return wrong(`cost ${costOf(bill)}`)
  if (usageSource === 'upstream') {
    const isServed = answers.some(({ usage }) => usage?.input === input && usage.output === output)
    return isServed ? [] : wrong('not what was served')
  }
  const words = Math.max(...answers.map(({ pieces }) => pieces))
  return output <= words * tokensPerWord ? [] : wrong(`only ${words} words were written`)
}

/** A charge has one event, a swept hold one with the outcome `unknown`, and a refused call one and no charge. */
function findWrongEvents(bills: readonly Bill[], events: Books['events']): string[] {
  const byRequest = Map.groupBy(events, (event) => `${event.organizationId} ${event.requestId}`)
  const known = new Set(bills.map((bill) => `${bill.organizationId} ${bill.requestId}`))
  const isRefused = ({ outcome }: Books['events'][number]) => outcome === 'refused'
  const strays = [...byRequest]
    .filter(
      ([request, found]) => !known.has(request) && !(found.length === 1 && found.every(isRefused)),
    )
    .map(([request]) => request)
  const wrong = bills.filter((bill) => {
    const outcomes = byRequest.get(`${bill.organizationId} ${bill.requestId}`) ?? []
    const unknown = outcomes.filter(({ outcome }) => outcome === 'unknown').length
    const refused = outcomes.filter(isRefused).length
    const charged = bill.usage.length + bill.late.length
    // A call can be refused because nobody knew that its hold was made; then the hold is swept.
    const isWronglyRefused = refused > 1 || (refused === 1 && charged > 0)
    const others = outcomes.length - unknown - refused
    return unknown !== bill.unknown.length || others !== charged || isWronglyRefused
  })
  return [...wrong.map(describe), ...strays]
}

const accountsOf: Record<string, string> = {
  usage: 'wallet revenue',
  late_usage: 'wallet revenue',
  writeoff: 'writeoff revenue',
  payment: 'topup wallet',
  grant: 'promo wallet',
}

function isMisbooked({ kind, debit, credit, amount }: LedgerRow): boolean {
  if (kind === 'void_unknown') return amount !== 0
  return accountsOf[kind] !== `${debit} ${credit}` || amount < 0
}

function findWrongBalances({ accounts, ledger }: Books, isMetered: boolean): string[] {
  const ofOrganization = Map.groupBy(ledger, ({ organizationId }) => organizationId)
  return accounts.flatMap(({ organizationId, posted, used }) => {
    const rows = ofOrganization.get(organizationId) ?? []
    const into = sumOf(rows.filter(({ credit }) => credit === 'wallet'))
    const charged = sumOf(rows.filter(({ debit }) => debit === 'wallet'))
    const isRight = posted === into - charged && used === charged && (posted >= 0 || isMetered)
    return isRight ? [] : [`${organizationId}: ${posted} and ${used}, not ${into} - ${charged}`]
  })
}

function findWrongDays({ ledger, days }: Books): string[] {
  const charges = ledger.filter(({ kind }) => kind === 'usage' || kind === 'late_usage')
  const byOrganization = Map.groupBy(charges, ({ organizationId }) => organizationId)
  const found = new Map(days.map((row) => [row.organizationId, row]))
  return [...byOrganization].flatMap(([organizationId, rows]) => {
    const { requests = 0, credits = 0 } = found.get(organizationId) ?? {}
    if (requests === rows.length && credits === sumOf(rows)) return []
    return [`${organizationId}: ${requests} and ${credits}, not ${rows.length} and ${sumOf(rows)}`]
  })
}

function isGrantedOnce({ organizationId, id, credits }: Granted, ledger: readonly LedgerRow[]) {
  const rows = ledger.filter((row) => row.organizationId === organizationId && row.id === id)
  return rows.length === 1 && rows[0]?.amount === credits
}
