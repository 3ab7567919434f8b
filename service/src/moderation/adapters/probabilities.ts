import { malformed } from './malformed.ts'

/** Converts a probability to basis points. */
export function probabilityToBasisPoints(probability: number): number {
  // A negated comparison would let NaN pass.
  if (!(probability >= 0 && probability <= 1)) throw malformed('a score is not between 0 and 1')
  return Math.round(probability * 10_000)
}

/** The alternatives to one token of a reply, with their logarithmic probabilities. */
export type Alternatives = readonly { readonly token: string; readonly logprob: number }[]

/**
 * How probable `wanted` is compared with `other`, the two words that a model may answer with. Several tokens stand for one
 * word: with and without a space before it, in lower and upper case. Undefined if neither word is among the alternatives.
 */
export function probabilityShareOf(
  alternatives: Alternatives,
  wanted: string,
  other: string,
): number | undefined {
  const sumOf = (word: string) =>
    alternatives
      .filter(({ token }) => token.trim().toLowerCase() === word)
      .reduce((sum, { logprob }) => sum + Math.exp(Math.min(logprob, 0)), 0)
  const [forIt, against] = [sumOf(wanted), sumOf(other)]
  return forIt + against > 0 ? forIt / (forIt + against) : undefined
}
