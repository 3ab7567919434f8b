import { type TrafficSpan, trafficSpans } from '@gatehouse/contract/organization/traffic'

import { type Histogram, noteValue } from '#traffic/histogram.ts'

import type { CallFact, StatusClass } from './call-fact.ts'

/** What is summed of every group of calls. */
type Totals = {
  calls: number
  inputTokens: number
  cachedInputTokens: number
  outputTokens: number
  credits: number
}

export type SumKey = {
  organizationId: string
  span: TrafficSpan
  /** In Unix seconds. */
  start: number
  projectId: string
  model: string
  outcome: string
  statusClass: StatusClass
}

/** The calls of one span with the same project, model, outcome and class of status. */
export type TrafficSum = SumKey & Totals & { latency: Histogram; firstToken: Histogram }

/** The calls of a caller on one day with the same outcome. */
export type KeySum = Totals & {
  organizationId: string
  day: string
  keyId: string
  outcome: string
}

/** In the place of a project, a model or a key: those that have no row of their own. No id is this. */
export const other = '*'

/** Adds up calls. Rows are in the order in which they are first met. */
export function addUp(facts: readonly CallFact[]): { sums: TrafficSum[]; keys: KeySum[] } {
  const sums = new Map<string, TrafficSum>()
  const keys = new Map<string, KeySum>()
  for (const fact of facts) {
    for (const span of trafficSpans) addFact(sums, span, fact)
    addKey(keys, fact)
  }
  return { sums: [...sums.values()], keys: [...keys.values()] }
}

function addFact(sums: Map<string, TrafficSum>, span: TrafficSpan, fact: CallFact) {
  const { organizationId, projectId, model, outcome, statusClass } = fact
  const start = startOf(span, fact.at)
  const name = JSON.stringify([organizationId, span, start, projectId, model, outcome, statusClass])
  let sum = sums.get(name)
  if (!sum) {
    const key = { organizationId, span, start, projectId, model, outcome, statusClass }
    sum = { ...key, ...nothing, latency: new Map(), firstToken: new Map() }
    sums.set(name, sum)
  }
  addTotals(sum, { ...fact, calls: 1 })
  if (fact.durationMs !== null) noteValue(sum.latency, fact.durationMs)
  if (fact.firstTokenMs !== null) noteValue(sum.firstToken, fact.firstTokenMs)
}

function addKey(keys: Map<string, KeySum>, fact: CallFact) {
  const { organizationId, keyId, outcome } = fact
  const day = fact.at.toISOString().slice(0, 10)
  const name = JSON.stringify([organizationId, day, keyId, outcome])
  const sum = keys.get(name) ?? { organizationId, day, keyId, outcome, ...nothing }
  keys.set(name, sum)
  addTotals(sum, { ...fact, calls: 1 })
}

const nothing: Totals = {
  calls: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  outputTokens: 0,
  credits: 0,
}

export function addTotals(sum: Totals, more: Totals) {
  sum.calls += more.calls
  sum.inputTokens += more.inputTokens
  sum.cachedInputTokens += more.cachedInputTokens
  sum.outputTokens += more.outputTokens
  sum.credits += more.credits
}

export const secondsOf: Record<TrafficSpan, number> = { minute: 60, hour: 3600, day: 86_400 }

/** The beginning of the span that a moment is in, in Unix seconds. */
export function startOf(span: TrafficSpan, at: Date): number {
  const seconds = Math.floor(at.getTime() / 1000)
  return seconds - (seconds % secondsOf[span])
}
