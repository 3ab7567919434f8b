import type { Answered } from '@gatehouse/tools/scripted-upstream/call'

import type { Books, LedgerRow } from './credit-books.ts'
import { creditsPerToken, nameOf } from './credit-calls.ts'
import type { ToldCall } from './credit-load.ts'

// Three logs that know nothing of each other: what clients were told, what the upstream really served, and
// what the ledger says. Nothing here asks anybody anything.

/** A grant that its operator was told of. */
export type Granted = { organizationId: string; id: string; credits: number }

export type Logs = {
  told: readonly ToldCall[]
  served: readonly Answered[]
  books: Books
  granted: readonly Granted[]
}

/** What the ledger says of one call. */
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
  'told another amount than charged',
  'charged another amount than served',
  'served without a record',
  'charged but not served',
  'refused but served or charged',
  'without exactly one event',
  'booked between wrong accounts',
  'balance differs from the ledger',
  'still held',
  'sums of the days differ',
  'granted other than once',
] as const

/** A local count may take a short word for more than one token. */
const tokensPerWord = 2

export function compareLogs({ told, served, books, granted }: Logs): Findings {
  const bills = billsOf(books.ledger)
  const byName = Map.groupBy(bills, ({ name }) => name)
  const servedByName = Map.groupBy(served, ({ key }) => key ?? 'without a name')
  return {
    'charged twice': bills.filter(isTwice(byName)).map(describe),
    'acknowledged without a charge': told
      .filter((call) => call.told && !byName.get(nameOfCall(call))?.some(isCharged))
      .map(nameOfCall),
    'told another amount than charged': told.flatMap((call) => {
      const bill = byName.get(nameOfCall(call))?.find(isCharged)
      return bill ? whyToldWrong(call, bill) : []
    }),
    'charged another amount than served': bills.flatMap((bill) => {
      const answers = servedByName.get(bill.name)
      return answers ? whyChargedWrong(bill, answers) : []
    }),
    'served without a record': [...servedByName.keys()].filter((name) => !byName.has(name)),
    'charged but not served': bills
      .filter((bill) => costOf(bill) > 0 && !servedByName.has(bill.name))
      .map(describe),
    'refused but served or charged': told
      .filter(({ status }) => status >= 400)
      .map(nameOfCall)
      .filter(
        (name) => servedByName.has(name) || byName.get(name)?.some((bill) => costOf(bill) > 0),
      ),
    'without exactly one event': whichEventsAreWrong(bills, books.events),
    'booked between wrong accounts': books.ledger.filter(isMisbooked).map(({ id }) => id),
    'balance differs from the ledger': whichBalancesDiffer(books),
    'still held': [
      ...(books.holds > 0 ? [`${books.holds} holds`] : []),
      ...books.accounts.filter(({ held }) => held !== 0).map((row) => row.organizationId),
    ],
    'sums of the days differ': whichDaysDiffer(books),
    'granted other than once': granted
      .filter((grant) => !isGrantedOnce(grant, books.ledger))
      .map(({ id }) => id),
  }
}

const nameOfCall = ({ organizationId, model }: ToldCall) => nameOf(organizationId, model)
const describe = ({ name, requestId }: Bill) => `${name} ${requestId}`

/** Entries of one request belong together; grants and payments are of no request. */
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
      ...{ organizationId, requestId: requestOf(rows[0]!) },
      ...{ usage: ofKind('usage'), late: ofKind('late_usage'), unknown: ofKind('void_unknown') },
      writtenOff: sumOf(ofKind('writeoff')),
    }
  })
}

const sumOf = (rows: readonly { amount: number }[]) =>
  rows.reduce((sum, { amount }) => sum + amount, 0)

const isCharged = ({ usage, late }: Bill) => usage.length + late.length > 0
const chargeOf = ({ usage, late }: Bill) => sumOf([...usage, ...late])
/** What it would have cost with a full balance. */
const costOf = (bill: Bill) => chargeOf(bill) + bill.writtenOff

/** One call has one bill, and a bill is charged once: at its time, or late after it was given up. */
const isTwice = (byName: Map<string, Bill[]>) => (bill: Bill) => {
  const { usage, late, unknown, name } = bill
  const isOneCharge = usage.length + unknown.length === 1 && late.length <= unknown.length
  return !isOneCharge || byName.get(name)?.length !== 1
}

/**
 * Without a balance nobody knew yet whether all of it could be charged. Whoever is told has had the whole
 * answer, so the upstream's own count was there.
 */
function whyToldWrong({ told }: ToldCall, bill: Bill): string[] {
  if (!told) return []
  const charged = told.remaining === null ? costOf(bill) : chargeOf(bill)
  const isCounted = [...bill.usage, ...bill.late].every(
    ({ usageSource }) => usageSource === 'upstream',
  )
  const isRight = isCounted && told.credits === charged && (told.remaining ?? 0) >= 0
  return isRight ? [] : [`${describe(bill)} charged ${charged}, told ${JSON.stringify(told)}`]
}

const creditsFor = (input: number, output: number) =>
  input * creditsPerToken.input + output * creditsPerToken.output

/** By the upstream's own count; a call that was cut by what had been written, as well as it is known. */
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

/** A charge has the event of its call; a call that was given up has one that says so. */
function whichEventsAreWrong(bills: readonly Bill[], events: Books['events']): string[] {
  const byRequest = Map.groupBy(events, (event) => `${event.organizationId} ${event.requestId}`)
  const known = new Set(bills.map((bill) => `${bill.organizationId} ${bill.requestId}`))
  const strays = [...byRequest.keys()].filter((request) => !known.has(request))
  const wrong = bills.filter((bill) => {
    const outcomes = byRequest.get(`${bill.organizationId} ${bill.requestId}`) ?? []
    const unknown = outcomes.filter(({ outcome }) => outcome === 'unknown').length
    const charged = bill.usage.length + bill.late.length
    return unknown !== bill.unknown.length || outcomes.length - unknown !== charged
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

function whichBalancesDiffer({ accounts, ledger }: Books): string[] {
  const ofOrganization = Map.groupBy(ledger, ({ organizationId }) => organizationId)
  return accounts.flatMap(({ organizationId, posted, used }) => {
    const rows = ofOrganization.get(organizationId) ?? []
    const into = sumOf(rows.filter(({ credit }) => credit === 'wallet'))
    const charged = sumOf(rows.filter(({ debit }) => debit === 'wallet'))
    const isRight = posted === into - charged && used === charged && posted >= 0
    return isRight ? [] : [`${organizationId}: ${posted} and ${used}, not ${into} - ${charged}`]
  })
}

function whichDaysDiffer({ ledger, days }: Books): string[] {
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
