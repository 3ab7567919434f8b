import { malformed } from './malformed.ts'

/** Converts a probability to basis points. */
export function probabilityToBasisPoints(probability: number): number {
  // A negated comparison would let NaN pass.
  if (!(probability >= 0 && probability <= 1)) throw malformed('a score is not between 0 and 1')
  return Math.round(probability * 10_000)
}
