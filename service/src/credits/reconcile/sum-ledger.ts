import { creditsFromMeta, type UsageMeta } from '#credits/usage-meta.ts'

import type { CheckedEntry, StoredBalance, UsageDayRow } from './reconcile-store.ts'

/** A stored number that differs from what the ledger adds up to. Amounts are text: they may be of any size. */
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
export type LedgerFinding = Omit<Difference, 'organizationId'>

/**
 * The accounts that each kind of entry moves credits between. An entry has both its sides in one row, so the
 * sum over all accounts is always zero; only the choice of accounts can be wrong.
 */
const accountsByKind: Record<CheckedEntry['kind'], readonly string[]> = {
  usage: ['wallet to revenue'],
  late_usage: ['wallet to revenue'],
  void_unknown: ['wallet to revenue'],
  writeoff: ['writeoff to revenue', 'writeoff to refund', 'refund to writeoff'],
  payment: ['topup to wallet'],
  grant: ['promo to wallet'],
  refund: ['wallet to refund', 'refund to wallet'], // the latter if it is undone
}

const isCharge = ({ kind }: CheckedEntry) => kind === 'usage' || kind === 'late_usage'

export type LedgerSums = {
  wallet: bigint
  used: bigint
  paid: bigint
  writtenOff: bigint
  writtenOffOfCharges: bigint
}

const noSums: LedgerSums = {
  wallet: 0n,
  used: 0n,
  paid: 0n,
  writtenOff: 0n,
  writtenOffOfCharges: 0n,
}

/** Adds up the entries of one organization, and checks each of them by itself. */
export function createLedgerSums(from: LedgerSums = noSums) {
  const sums = { ...from }

  function add(entry: CheckedEntry): LedgerFinding[] {
    const { id, kind, debit, credit } = entry
    const amount = BigInt(entry.amount)
    if (credit === 'wallet') sums.wallet += amount
    if (debit === 'wallet') sums.wallet -= amount
    if (kind === 'payment') sums.paid += amount
    // A refund lowers what was paid by its full amount, also by the part that was written off.
    if (credit === 'refund') sums.paid -= amount
    if (debit === 'refund') sums.paid += amount
    if (kind === 'writeoff' && credit === 'revenue') sums.writtenOff += amount
    if (isCharge(entry)) {
      sums.used += amount
      sums.writtenOffOfCharges += BigInt(entry.written_off)
    }
    const moved = `${debit} to ${credit}`
    const areAccountsRight = accountsByKind[kind].includes(moved)
    const expected = accountsByKind[kind].join(' or ')
    return [
      ...(areAccountsRight
        ? []
        : [{ what: 'accounts of an entry' as const, of: id, expected, found: moved }]),
      ...checkAmount(entry),
    ]
  }

  return {
    add,
    current: (): LedgerSums => ({ ...sums }),
    compare: (stored: StoredBalance) => compareBalance(sums, stored),
  }
}

export const compareBalance = (
  sums: LedgerSums | undefined = noSums,
  stored: StoredBalance,
): LedgerFinding[] => [
  ...difference('posted', sums.wallet, stored.posted),
  ...difference('used', sums.used, stored.used),
  ...difference('paid', sums.paid, stored.paid),
  ...difference('write-offs', sums.writtenOffOfCharges, String(sums.writtenOff)),
]

/** What is found here is true of this moment and says nothing about entries: no ledger is read because of it. */
export const compareHolds = (stored: StoredBalance): LedgerFinding[] => [
  ...difference('held', BigInt(stored.open_holds), stored.held),
  ...difference('overdue holds', 0n, stored.overdue_holds),
]

const difference = (
  what: LedgerFinding['what'],
  expected: bigint,
  found: string,
): LedgerFinding[] =>
  String(expected) === found ? [] : [{ what, of: null, expected: String(expected), found }]

/** A charge and its write-off together are the cost of the call, computed from its `meta`. */
function checkAmount(entry: CheckedEntry): LedgerFinding[] {
  const { id, kind, amount, written_off: writtenOff } = entry
  if (!isCharge(entry) && kind !== 'void_unknown') return []
  const found = String(BigInt(amount) + BigInt(writtenOff))
  const expected = kind === 'void_unknown' ? '0' : computeCost(entry.meta)
  return found === expected ? [] : [{ what: 'charge', of: id, expected, found }]
}

function computeCost(meta: unknown): string {
  try {
    return String(creditsFromMeta(meta as UsageMeta))
  } catch {
    return 'something that can be computed'
  }
}

/** Dates of PostgreSQL. */
export const beforeAllDays = '-infinity'
export const afterAllDays = 'infinity'

export const ledgerDayOf = ({ at }: { at: Date }) => at.toISOString().slice(0, 10)

type DaySum = { day: string; requests: bigint; input: bigint; output: bigint; credits: bigint }

/** The sums of one day by project, key and model, as they are stored. */
export type KeptDay = {
  day: string
  sums: readonly (readonly [
    key: string,
    requests: string,
    input: string,
    output: string,
    credits: string,
  ])[]
}

/** Adds up charges by day, project, key and model, as the table `usage_day` does. */
export function createDaySums(from?: KeptDay) {
  const sums = new Map<string, DaySum>()
  for (const [key, requests, input, output, credits] of from?.sums ?? []) {
    const [requestCount, inputCount] = [BigInt(requests), BigInt(input)]
    const rest = { output: BigInt(output), credits: BigInt(credits) }
    sums.set(key, { day: from?.day ?? '', requests: requestCount, input: inputCount, ...rest })
  }
  return {
    /** Of a day whose sums have not been dropped. */
    keep: (day: string): KeptDay => ({
      day,
      sums: [...sums]
        .filter(([, sum]) => sum.day === day)
        .map(([key, { requests, input, output, credits }]) => [
          key,
          String(requests),
          String(input),
          String(output),
          String(credits),
        ]),
    }),
    add(entry: CheckedEntry) {
      if (!isCharge(entry)) return
      const meta = entry.meta as UsageMeta
      const day = ledgerDayOf(entry)
      const key = dayKey(day, entry.project_id ?? '', meta.key_id, meta.model)
      const sum = sums.get(key) ?? { day, requests: 0n, input: 0n, output: 0n, credits: 0n }
      sum.requests += 1n
      sum.input += toBigCount(meta.input_tokens)
      sum.output += toBigCount(meta.output_tokens)
      sum.credits += BigInt(entry.amount)
      sums.set(key, sum)
    },
    /** Compares the days before `before`, and drops their sums. */
    compare(rows: readonly UsageDayRow[], before: string): LedgerFinding[] {
      const stored = new Map(rows.map((row) => [dayKeyOfRow(row), describeRow(row)]))
      const expectedSums = new Map([...sums].filter(([, { day }]) => isBefore(day, before)))
      for (const key of expectedSums.keys()) sums.delete(key)
      return [...new Set([...expectedSums.keys(), ...stored.keys()])].flatMap((of) => {
        const sum = expectedSums.get(of)
        const [expected, found] = [sum ? describe(sum) : 'nothing', stored.get(of) ?? 'nothing']
        return expected === found ? [] : [{ what: 'usage of a day' as const, of, expected, found }]
      })
    },
  }
}

const isBefore = (day: string, before: string) => before === afterAllDays || day < before

/** Anything that is not a count is reported as a charge that cannot be computed. */
const toBigCount = (tokens: unknown) => (Number.isSafeInteger(tokens) ? BigInt(Number(tokens)) : 0n)

const dayKey = (...parts: readonly (string | undefined)[]) =>
  parts.map((part) => part || '-').join(' ')

const dayKeyOfRow = ({ day, project_id, key_id, model }: UsageDayRow) =>
  dayKey(day, project_id, key_id, model)

const describe = ({ requests, input, output, credits }: DaySum) =>
  `${requests} requests, ${input} + ${output} tokens, ${credits} credits`

const describeRow = ({ requests, input_tokens, output_tokens, credits }: UsageDayRow) =>
  `${requests} requests, ${input_tokens} + ${output_tokens} tokens, ${credits} credits`
