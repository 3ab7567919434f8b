// A model of the hold queue without a database: one organization, and no concurrency.

export type Entry = { kind: string; amount: bigint }
export type Day = { requests: number; inputTokens: number; outputTokens: number; credits: bigint }
export type ModelCall = {
  id: string
  /** The project, key and model that its usage is counted under. */
  subject: string
  inputTokens: number
  outputTokens: number
}

export type CreditModel = ReturnType<typeof createCreditModel>

export function createCreditModel() {
  return {
    posted: 0n,
    used: 0n,
    held: 0n,
    holds: new Map<string, bigint>(),
    entries: new Map<string, Entry>(),
    days: new Map<string, Day>(),
    /** Audit events of calls, each with its outcome. */
    events: [] as string[],
  }
}

const lesser = (one: bigint, other: bigint) => (one < other ? one : other)
const availableOf = ({ posted, held }: CreditModel) => posted - held

export function post(model: CreditModel, id: string, entry: Entry) {
  if (model.entries.has(id)) return
  const isGrant = entry.kind === 'grant'
  const amount = isGrant ? entry.amount : lesser(entry.amount, availableOf(model))
  model.entries.set(id, { kind: entry.kind, amount })
  model.posted += isGrant ? amount : -amount
}

export function reserve(model: CreditModel, id: string, amount: bigint) {
  if (model.holds.has(id)) return { isHeld: true }
  if (amount > availableOf(model)) return { isHeld: false }
  model.holds.set(id, amount)
  model.held += amount
  return { isHeld: true }
}

function release(model: CreditModel, id: string): bigint | undefined {
  const amount = model.holds.get(id)
  if (amount === undefined) return undefined
  model.holds.delete(id)
  model.held -= amount
  return amount
}

/** A call is charged at most its hold; without a hold, at most the balance. */
export function settle(model: CreditModel, call: ModelCall, amount: bigint) {
  const { id } = call
  const hold = release(model, id)
  const isInTime = hold !== undefined && !model.entries.has(id) && !model.entries.has(`${id}:late`)
  const isUsage = model.entries.get(id)?.kind === 'usage'
  const before = isUsage ? model.entries.get(id) : model.entries.get(`${id}:late`)
  const charged = before?.amount ?? lesser(amount, isInTime ? hold : availableOf(model))
  if (!before) charge(model, call, { isInTime, charged, writtenOff: amount - charged })
  return { charged, posted: model.posted }
}

type ModelCharge = { isInTime: boolean; charged: bigint; writtenOff: bigint }

function charge(
  model: CreditModel,
  call: ModelCall,
  { isInTime, charged, writtenOff }: ModelCharge,
) {
  const id = isInTime ? call.id : `${call.id}:late`
  model.posted -= charged
  model.used += charged
  model.entries.set(id, { kind: isInTime ? 'usage' : 'late_usage', amount: charged })
  if (writtenOff > 0n) {
    model.entries.set(`${id}:writeoff`, { kind: 'writeoff', amount: writtenOff })
  }
  model.events.push(`${call.id} completed`)
  const day = model.days.get(call.subject)
  model.days.set(call.subject, {
    requests: (day?.requests ?? 0) + 1,
    inputTokens: (day?.inputTokens ?? 0) + call.inputTokens,
    outputTokens: (day?.outputTokens ?? 0) + call.outputTokens,
    credits: (day?.credits ?? 0n) + charged,
  })
}

export function expire(model: CreditModel, id: string) {
  if (release(model, id) === undefined || model.entries.has(id)) return
  model.entries.set(id, { kind: 'void_unknown', amount: 0n })
  model.events.push(`${id} unknown`)
}
