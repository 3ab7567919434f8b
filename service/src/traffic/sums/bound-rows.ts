import { addHistogram } from '#traffic/histogram.ts'

import { addTotals, type KeySum, other, type SumKey, type TrafficSum } from './add-up.ts'

/** How many rows an organization may have in one span, and how many callers on one day, before new ones are added to `*`. */
export const rowsMax = 1000

/** A span of an organization that is nearly full, and how many rows it has. */
export type Filled = { organizationId: string; at: string; rows: number }

/** Which span a row is in, as `Filled` names it. */
export const spanOfSum = ({ span, start }: Pick<TrafficSum, 'span' | 'start'>) => `${span} ${start}`

/** The names of rows that are stored already. They are always added to. */
export type Stored = ReadonlySet<string>
export const nameOfSum = (sum: SumKey) =>
  [sum.organizationId, spanOfSum(sum), sum.projectId, sum.model, sum.outcome, sum.statusClass].join(
    '\n',
  )
export const nameOfKey = (sum: Pick<KeySum, 'organizationId' | 'day' | 'keyId' | 'outcome'>) =>
  [sum.organizationId, sum.day, sum.keyId, sum.outcome].join('\n')

/**
 * Adds sums for which there is no room to those of `*`. The rows of `*` come on top: there is at most one for each outcome and
 * class of status.
 */
export function boundSums(sums: readonly TrafficSum[], stored: Stored, filled: readonly Filled[]) {
  return bound<TrafficSum>(sums, filled, {
    spanOf: spanOfSum,
    nameOf: nameOfSum,
    stored,
    toOther: (sum) => ({ ...sum, projectId: other, model: other }),
    add(sum, more) {
      addTotals(sum, more)
      addHistogram(sum.latency, more.latency)
      addHistogram(sum.firstToken, more.firstToken)
    },
  })
}

export function boundKeys(sums: readonly KeySum[], stored: Stored, filled: readonly Filled[]) {
  return bound<KeySum>(sums, filled, {
    spanOf: ({ day }) => day,
    nameOf: nameOfKey,
    stored,
    toOther: (sum) => ({ ...sum, keyId: other }),
    add: addTotals,
  })
}

type Rules<Sum> = {
  spanOf(sum: Sum): string
  nameOf(sum: Sum): string
  stored: Stored
  toOther(sum: Sum): Sum
  add(sum: Sum, more: Sum): void
}

function bound<Sum extends { organizationId: string }>(
  sums: readonly Sum[],
  filled: readonly Filled[],
  { spanOf, nameOf, stored, toOther, add }: Rules<Sum>,
): Sum[] {
  const rows = new Map(filled.map((span) => [`${span.organizationId}\n${span.at}`, span.rows]))
  const kept = new Map<string, Sum>()
  for (const sum of sums) {
    const span = `${sum.organizationId}\n${spanOf(sum)}`
    const used = rows.get(span) ?? 0
    const isNew = !stored.has(nameOf(sum))
    const isFull = isNew && used >= rowsMax
    if (isNew && !isFull) rows.set(span, used + 1)
    const target = isFull ? toOther(sum) : sum
    const name = nameOf(target)
    const known = kept.get(name)
    if (known) add(known, target)
    else kept.set(name, target)
  }
  return [...kept.values()]
}
