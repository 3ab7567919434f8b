/** How high a text was scored, and whether it belongs to the category. */
export type Scored = { readonly score: number; readonly isPositive: boolean }

type Group = { score: number; positives: number; negatives: number }

/** Texts of equal scores together, highest first: no order among them may flatter the result. */
function groupByScore(all: readonly Scored[]): Group[] {
  const groups = new Map<number, Group>()
  for (const { score, isPositive } of all) {
    const group = groups.get(score) ?? { score, positives: 0, negatives: 0 }
    if (isPositive) group.positives++
    else group.negatives++
    groups.set(score, group)
  }
  return [...groups.values()].toSorted((a, b) => b.score - a.score)
}

const countPositives = (all: readonly Scored[]) => all.filter((each) => each.isPositive).length

/** Area under the precision-recall curve, as average precision. */
export function averagePrecision(all: readonly Scored[]): number {
  let found = 0
  let seen = 0
  let sum = 0
  for (const { positives, negatives } of groupByScore(all)) {
    found += positives
    seen += positives + negatives
    sum += (positives * found) / seen
  }
  return sum / found
}

/** Area under the ROC curve: how often a positive text scores higher than a negative one; equal ones count half. */
export function rocArea(all: readonly Scored[]): number {
  let positivesAbove = 0
  let pairs = 0
  for (const { positives, negatives } of groupByScore(all)) {
    pairs += negatives * (positivesAbove + positives / 2)
    positivesAbove += positives
  }
  return pairs / (positivesAbove * (all.length - positivesAbove))
}

/** The share of positive texts that is found when at most this share of the negative ones may be. */
export function recallAt(falsePositiveRate: number, all: readonly Scored[]): number {
  const positivesTotal = countPositives(all)
  const negativesMax = (all.length - positivesTotal) * falsePositiveRate
  let found = 0
  let wrong = 0
  for (const { positives, negatives } of groupByScore(all)) {
    wrong += negatives
    if (wrong > negativesMax) break
    found += positives
  }
  return found / positivesTotal
}
