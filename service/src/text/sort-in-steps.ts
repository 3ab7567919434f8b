import type { Steps } from '#platform/steps/steps.ts'

/** How many texts are sorted or merged in one step. */
const textsPerStep = 512

/** The texts in the order of their UTF-16 units. Hundreds of thousands of them take too long for one step. */
export function* sortInSteps(texts: readonly string[]): Steps<string[]> {
  let sorted: string[][] = []
  for (let first = 0; first < texts.length; first += textsPerStep) {
    const some = texts.slice(first, first + textsPerStep)
    sorted.push(some.toSorted((a, b) => (a < b ? -1 : 1)))
    yield
  }
  while (sorted.length > 1) {
    const merged: string[][] = []
    for (let first = 0; first < sorted.length; first += 2) {
      merged.push(yield* merge(sorted[first] ?? [], sorted[first + 1] ?? []))
    }
    sorted = merged
  }
  return sorted[0] ?? []
}

function* merge(left: readonly string[], right: readonly string[]): Steps<string[]> {
  const merged: string[] = []
  let [inLeft, inRight] = [0, 0]
  while (merged.length < left.length + right.length) {
    const [a, b] = [left[inLeft], right[inRight]]
    const isLeft = b === undefined || (a !== undefined && a < b)
    merged.push((isLeft ? a : b) ?? '')
    if (isLeft) inLeft++
    else inRight++
    if (merged.length % textsPerStep === 0) yield
  }
  return merged
}
