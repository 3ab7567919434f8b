import type { EndOutcome } from '#policies/guard/guard-end.ts'
import type { AnswerFormula, AnswerRules } from '#policies/rules/answer-rules.ts'
import type { EntityAtom } from '#policies/rules/formula.ts'
import { EntityScanner } from '#redaction/entity-scanner.ts'
import { normalise } from '#text/normalise.ts'

/** What arrives: text of a channel, or its end. */
export type Arrival = { channel: string; text: string } | { channel: string; isEnd: true }

export type TestRules = {
  rules: AnswerRules
  literals: readonly string[]
  /** The windows in which a score atom hits, by the original offset at which they start. */
  scoreStarts?: (atom: number, channel: string, text: string) => readonly number[]
  /** What the rules without a formula say of all texts. */
  evaluateAtEnd(texts: readonly string[]): readonly EndOutcome[]
}

export type Enforced = {
  rule: number | null
  isError: boolean
  channel: string
  cut: number
  /** How much of each channel may leave. */
  cleared: ReadonlyMap<string, number>
}

/** A text in another reading, and the order of each of its units: that of what it stands for. */
export type WholeView = { text: string; orders: readonly number[] }

type WholeChannel = {
  name: string
  isView: boolean
  text: string
  /** When each unit of the text arrived, and then the end of the channel. */
  orders: number[]
  normalised: string
  /** When each unit of the normalised text arrived, and then the end. */
  normalisedOrders: number[]
}

/**
 * The definition: what enforcement does with a complete answer. Written without the guard and without care for time,
 * from the meaning of the rules alone.
 */
export function enforceWhole(
  test: TestRules,
  arrivals: readonly Arrival[],
  views: readonly WholeView[] = [],
): Enforced {
  const channels = readChannels(arrivals)
  const all = [...channels, ...views.map(toChannel)]
  const atEnd = test.evaluateAtEnd(channels.map(({ text }) => text))
  let best = { rule: null as number | null, isError: false, order: Infinity }
  for (const rule of test.rules.rules) {
    const { index, formula } = rule
    if (!rule.isEnforcing) continue
    const outcome = atEnd.find((one) => one.index === index)
    const order = formula ? cutOf(formula, all, test) : outcome?.isMatch ? 0 : Infinity
    const isError = (formula ? rule : outcome)?.isError ?? false
    if (order < best.order) best = { rule: index, isError, order }
  }
  const cleared = new Map(
    channels.map((channel) => [channel.name, countBefore(channel, best.order)]),
  )
  const holder = channels.find(({ orders }) => orders.includes(best.order))
  const cut = holder?.orders.indexOf(best.order) ?? 0
  return { rule: best.rule, isError: best.isError, channel: holder?.name ?? '', cut, cleared }
}

function readChannels(arrivals: readonly Arrival[]): WholeChannel[] {
  const channels = new Map<string, { text: string; orders: number[] }>()
  const open = new Set<string>()
  let order = 0
  for (const arrival of arrivals) {
    const { channel: name } = arrival
    if (!channels.has(name)) {
      channels.set(name, { text: '', orders: [] })
      open.add(name)
    }
    const channel = channels.get(name)!
    const text = 'text' in arrival ? arrival.text : ''
    channel.text += text
    for (let unit = 0; unit < text.length; unit++) channel.orders.push(order++)
    if ('isEnd' in arrival) {
      channel.orders.push(order++)
      open.delete(name)
    }
  }
  for (const name of open) channels.get(name)!.orders.push(order++)
  return Array.from(channels, ([name, { text, orders }]) => ({
    ...normaliseChannel(text, orders),
    name,
    isView: false,
  }))
}

function normaliseChannel(text: string, orders: number[]) {
  const { text: normalised, originalOffset } = normalise(text)
  const normalisedOrders = Array.from({ length: normalised.length }, (_, index) => {
    return orders[originalOffset(isInPair(normalised, index) ? index - 1 : index)]!
  })
  normalisedOrders.push(orders.at(-1)!)
  return { text, orders, normalised, normalisedOrders }
}

/** Views end after everything else. */
const toChannel = ({ text, orders }: WholeView): WholeChannel => ({
  ...normaliseChannel(text, [...orders, Number.MAX_SAFE_INTEGER]),
  name: '',
  isView: true,
})

function cutOf(formula: AnswerFormula, channels: readonly WholeChannel[], test: TestRules): number {
  switch (formula.kind) {
    case 'constant':
      return formula.value ? 0 : Infinity
    case 'and':
      return Math.max(0, ...formula.parts.map((part) => cutOf(part, channels, test)))
    case 'or':
      return Math.min(Infinity, ...formula.parts.map((part) => cutOf(part, channels, test)))
    case 'size':
      return sizeStart(formula.atLeast, channels)
    case 'pattern':
      return firstStart(channels, ({ normalised, normalisedOrders }) => {
        const match = test.rules.patterns.find(formula.pattern, normalised, 0)
        return match ? normalisedOrders[match.start]! : Infinity
      })
    case 'literal':
      return firstStart(channels, ({ normalised, normalisedOrders }) => {
        const start = normalised.indexOf(test.literals[formula.literal]!)
        return start === -1 ? Infinity : normalisedOrders[start]!
      })
    case 'term':
      throw new Error('No policy has terms.')
    case 'entity':
      return entityStart(test.rules.entities[formula.atom]!, channels)
    case 'score':
      return firstStart(channels, ({ name, text, orders }) => {
        const starts = test.scoreStarts?.(formula.atom, name, text) ?? []
        return Math.min(Infinity, ...starts.map((start) => orders[start]!))
      })
  }
}

function firstStart(channels: readonly WholeChannel[], startIn: (channel: WholeChannel) => number) {
  return Math.min(Infinity, ...channels.map(startIn))
}

function entityStart({ entity, atLeast }: EntityAtom, channels: readonly WholeChannel[]): number {
  const views = channels.filter(({ isView }) => isView).map((view) => [view])
  const all = [channels.filter(({ isView }) => !isView), ...views]
  return Math.min(...all.map((some) => entityStartIn(some, { entity, atLeast })))
}

function entityStartIn(
  channels: readonly WholeChannel[],
  { entity, atLeast }: Pick<EntityAtom, 'entity' | 'atLeast'>,
): number {
  const orders: number[] = []
  for (const { normalised, normalisedOrders } of channels) {
    const scanner = new EntityScanner({
      begin: (kind, start) => void (kind === entity && orders.push(normalisedOrders[start]!)),
    })
    scanner.read(normalised)
    scanner.end()
  }
  return orders.toSorted((a, b) => a - b)[atLeast - 1] ?? Infinity
}

function sizeStart(size: number, channels: readonly WholeChannel[]): number {
  if (size <= 0) return 0
  const sized = channels.filter(({ isView }) => !isView)
  const orders = sized.flatMap(({ normalised, normalisedOrders }) =>
    normalisedOrders.slice(0, -1).filter((_, index) => !isInPair(normalised, index)),
  )
  return orders.toSorted((a, b) => a - b)[size - 1] ?? Infinity
}

function countBefore({ text, orders }: WholeChannel, order: number): number {
  const count = orders.slice(0, -1).filter((one) => one < order).length
  return isInPair(text, count) ? count - 1 : count
}

/** Whether the unit at `index` is the second of a surrogate pair. */
export function isInPair(text: string, index: number): boolean {
  const before = text.charCodeAt(index - 1)
  const unit = text.charCodeAt(index)
  return before >= 0xd800 && before <= 0xdbff && unit >= 0xdc00 && unit <= 0xdfff
}
