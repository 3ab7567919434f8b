// What credits are meant to do, without a database: one organization, one step after the other.

export type Entry = { kind: string; amount: bigint }
export type Day = { requests: number; inputTokens: number; outputTokens: number; credits: bigint }
export type Call = {
  id: string
  /** Whom its usage is counted for. */
  subject: string
  inputTokens: number
  outputTokens: number
}

export type CreditModel = ReturnType<typeof createCreditModel>

export function createCreditModel() {
  return {
    ...{ posted: 0n, used: 0n, held: 0n },
    holds: new Map<string, bigint>(),
    entries: new Map<string, Entry>(),
    days: new Map<string, Day>(),
    /** Calls that were told, each with how it ended. */
    told: [] as string[],
  }
}

const lesser = (one: bigint, other: bigint) => (one < other ? one : other)
const availableOf = ({ posted, held }: CreditModel) => posted - held

export function post(model: CreditModel, id: string, entry: Entry) {
  if (model.entries.has(id)) return
  const isComing = entry.kind === 'grant'
  const amount = isComing ? entry.amount : lesser(entry.amount, availableOf(model))
  model.entries.set(id, { kind: entry.kind, amount })
  model.posted += isComing ? amount : -amount
}

export function reserve(model: CreditModel, id: string, amount: bigint) {
  if (model.holds.has(id)) return { isHeld: true }
  if (amount > availableOf(model)) return { isHeld: false }
  model.holds.set(id, amount)
  model.held += amount
  return { isHeld: true }
}

function release(model: CreditModel, id: string): boolean {
  const amount = model.holds.get(id)
  if (amount === undefined) return false
  model.holds.delete(id)
  model.held -= amount
  return true
}

/** What a call costs comes from its hold first, so that the rest of the balance is asked for the rest only. */
export function settle(model: CreditModel, call: Call, amount: bigint) {
  const { id } = call
  const isInTime = release(model, id) && !model.entries.has(id) && !model.entries.has(`${id}:late`)
  const isUsage = model.entries.get(id)?.kind === 'usage'
  const before = isUsage ? model.entries.get(id) : model.entries.get(`${id}:late`)
  const charged = before?.amount ?? lesser(amount, availableOf(model))
  if (!before) charge(model, call, { isInTime, charged, lost: amount - charged })
  return { charged, available: availableOf(model) }
}

type Charge = { isInTime: boolean; charged: bigint; lost: bigint }

function charge(model: CreditModel, call: Call, { isInTime, charged, lost }: Charge) {
  const id = isInTime ? call.id : `${call.id}:late`
  model.posted -= charged
  model.used += charged
  model.entries.set(id, { kind: isInTime ? 'usage' : 'late_usage', amount: charged })
  if (lost > 0n) model.entries.set(`${id}:writeoff`, { kind: 'writeoff', amount: lost })
  model.told.push(`${call.id} completed`)
  const day = model.days.get(call.subject)
  model.days.set(call.subject, {
    requests: (day?.requests ?? 0) + 1,
    inputTokens: (day?.inputTokens ?? 0) + call.inputTokens,
    outputTokens: (day?.outputTokens ?? 0) + call.outputTokens,
    credits: (day?.credits ?? 0n) + charged,
  })
}

export function expire(model: CreditModel, id: string) {
  if (!release(model, id) || model.entries.has(id)) return
  model.entries.set(id, { kind: 'void_unknown', amount: 0n })
  model.told.push(`${id} unknown`)
}
