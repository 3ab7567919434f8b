import type { Entry, Standing, UsageDayRow } from './reconcile-store.ts'
import { creditsByMeta, type UsageMeta } from './usage-meta.ts'

/** Where what is kept differs from what the ledger says. Amounts as text: they may be of any size. */
export type Difference = {
  organizationId: string
  what:
    | 'account'
    | 'posted'
    | 'used'
    | 'held'
    | 'paid'
    | 'overdue holds'
    | 'charge'
    | 'accounts of an entry'
    | 'write-offs'
    | 'usage of a day'
  /** The entry, or the day with its project, key and model. */
  of: string | null
  expected: string
  found: string
}
export type Found = Omit<Difference, 'organizationId'>

/**
 * Which accounts an entry moves credits between. Every entry has both its sides in one row, so the sum over
 * all accounts is always zero; what can be wrong is which accounts they are.
 */
const sides: Record<Entry['kind'], readonly string[]> = {
  usage: ['wallet to revenue'],
  late_usage: ['wallet to revenue'],
  void_unknown: ['wallet to revenue'],
  writeoff: ['writeoff to revenue', 'writeoff to refund'],
  payment: ['topup to wallet'],
  grant: ['promo to wallet'],
  refund: ['wallet to refund'],
}

const isCharge = ({ kind }: Entry) => kind === 'usage' || kind === 'late_usage'

/** Adds up the entries of one organization and says which of them are wrong by themselves. */
export function createTally() {
  const sums = { wallet: 0n, used: 0n, paid: 0n, writtenOff: 0n, writtenOffOfCharges: 0n }

  function add(entry: Entry): Found[] {
    const { id, kind, debit, credit } = entry
    const amount = BigInt(entry.amount)
    if (credit === 'wallet') sums.wallet += amount
    if (debit === 'wallet') sums.wallet -= amount
    if (kind === 'payment') sums.paid += amount
    // Also what could not be taken back from the balance was paid back.
    if (credit === 'refund') sums.paid -= amount
    if (kind === 'writeoff' && credit === 'revenue') sums.writtenOff += amount
    if (isCharge(entry)) {
      sums.used += amount
      sums.writtenOffOfCharges += BigInt(entry.written_off)
    }
    const moved = `${debit} to ${credit}`
    const areSidesRight = sides[kind].includes(moved)
    const expected = sides[kind].join(' or ')
    return [
      ...(areSidesRight
        ? []
        : [{ what: 'accounts of an entry' as const, of: id, expected, found: moved }]),
      ...checkAmount(entry),
    ]
  }

  return {
    add,
    /** What the ledger says of the account and of what was paid, beside what is kept of it. */
    compare: (standing: Standing): Found[] => [
      ...differ('posted', sums.wallet, standing.posted),
      ...differ('used', sums.used, standing.used),
      ...differ('paid', sums.paid, standing.paid),
      ...differ('held', BigInt(standing.open_holds), standing.held),
      ...differ('overdue holds', 0n, standing.overdue_holds),
      ...differ('write-offs', sums.writtenOffOfCharges, String(sums.writtenOff)),
    ],
  }
}

const differ = (what: Found['what'], expected: bigint, found: string): Found[] =>
  String(expected) === found ? [] : [{ what, of: null, expected: String(expected), found }]

/** A charge and its write-off are what the call cost by what stands beside it. */
function checkAmount(entry: Entry): Found[] {
  const { id, kind, amount, written_off: writtenOff } = entry
  if (!isCharge(entry) && kind !== 'void_unknown') return []
  const found = String(BigInt(amount) + BigInt(writtenOff))
  const expected = kind === 'void_unknown' ? '0' : costOf(entry.meta)
  return found === expected ? [] : [{ what: 'charge', of: id, expected, found }]
}

function costOf(meta: unknown): string {
  try {
    return String(creditsByMeta(meta as UsageMeta))
  } catch {
    return 'something that can be computed'
  }
}

/** As PostgreSQL writes them. */
export const dayBeforeAll = '-infinity'
export const dayAfterAll = 'infinity'

export const dayOf = ({ at }: Entry) => at.toISOString().slice(0, 10)

type DaySum = { day: string; requests: bigint; input: bigint; output: bigint; credits: bigint }

/** Adds up calls by day, project, key and model. */
export function createDayTally() {
  const sums = new Map<string, DaySum>()
  return {
    add(entry: Entry) {
      if (!isCharge(entry)) return
      const meta = entry.meta as UsageMeta
      const day = dayOf(entry)
      const place = placeOf(day, entry.project_id ?? '', meta.key_id, meta.model)
      const sum = sums.get(place) ?? { day, requests: 0n, input: 0n, output: 0n, credits: 0n }
      sum.requests += 1n
      sum.input += countOf(meta.input_tokens)
      sum.output += countOf(meta.output_tokens)
      sum.credits += BigInt(entry.amount)
      sums.set(place, sum)
    },
    /** What is kept of the days before `before`, beside their sums, which are then forgotten. */
    compare(rows: readonly UsageDayRow[], before: string): Found[] {
      const kept = new Map(rows.map((row) => [placeOfRow(row), describeRow(row)]))
      const closed = new Map([...sums].filter(([, { day }]) => isBefore(day, before)))
      for (const place of closed.keys()) sums.delete(place)
      return [...new Set([...closed.keys(), ...kept.keys()])].flatMap((of) => {
        const sum = closed.get(of)
        const [expected, found] = [sum ? describe(sum) : 'nothing', kept.get(of) ?? 'nothing']
        return expected === found ? [] : [{ what: 'usage of a day' as const, of, expected, found }]
      })
    },
  }
}

const isBefore = (day: string, before: string) => before === dayAfterAll || day < before

/** What is no count shows as a charge that cannot be computed. */
const countOf = (tokens: unknown) => (Number.isSafeInteger(tokens) ? BigInt(Number(tokens)) : 0n)

const placeOf = (...parts: readonly (string | undefined)[]) =>
  parts.map((part) => part || '-').join(' ')

const placeOfRow = ({ day, project_id, key_id, model }: UsageDayRow) =>
  placeOf(day, project_id, key_id, model)

const describe = ({ requests, input, output, credits }: DaySum) =>
  `${requests} requests, ${input} + ${output} tokens, ${credits} credits`

const describeRow = ({ requests, input_tokens, output_tokens, credits }: UsageDayRow) =>
  `${requests} requests, ${input_tokens} + ${output_tokens} tokens, ${credits} credits`
