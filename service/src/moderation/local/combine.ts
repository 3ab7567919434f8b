/** One term alone is often harmless, so it stays under the threshold of 6,000 that two terms reach. */
const halfWay = 1.25

/** How sexual a text with this number of sexual terms is, in basis points: 4,444 for one, 6,154 for two, 7,059 for three. */
export function sexualScore(termCount: number): number {
  return Math.round((10_000 * termCount) / (termCount + halfWay))
}

/** No text of `sexual/minors` is kept to train on, so its score is the sexual one of a text that names a minor. */
export function minorsScore(sexual: number, hasMinor: boolean): number {
  return hasMinor ? sexual : 0
}
