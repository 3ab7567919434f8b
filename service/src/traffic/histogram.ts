// Histograms of times that can be added: each bucket is wider than the one before by the same factor, so a value is known to
// within a tenth, whether it is 5 milliseconds or 5 minutes.

/** Four buckets for each doubling. */
const bucketsPerDoubling = 4
/** Values from here on, more than four hours, share the last bucket. */
const bucketMax = 24 * bucketsPerDoubling

/** How many values are in a cell stands in its lower bits; the bucket above (migrations/0047). */
const amountRange = 2 ** 40

/** The cells of a histogram by their buckets. */
export type Histogram = Map<number, number>

/** The bucket of a time. Bucket 0 is up to one millisecond. */
export const histogramBucketOf = (ms: number): number =>
  ms <= 1 ? 0 : Math.min(bucketMax, Math.ceil(bucketsPerDoubling * Math.log2(ms)))

export function noteValue(histogram: Histogram, ms: number) {
  const bucket = histogramBucketOf(ms)
  histogram.set(bucket, (histogram.get(bucket) ?? 0) + 1)
}

/** Adds the cells of one histogram to another. */
export function addHistogram(sum: Histogram, more: Histogram) {
  for (const [bucket, amount] of more) sum.set(bucket, (sum.get(bucket) ?? 0) + amount)
}

/** As the database stores it. */
export const toCells = (histogram: Histogram): number[] =>
  [...histogram]
    .toSorted(([one], [other]) => one - other)
    .map(([bucket, amount]) => bucket * amountRange + amount)

export const fromCells = (cells: readonly number[]): Histogram =>
  new Map(cells.map((cell) => [Math.floor(cell / amountRange), cell % amountRange]))

/** The middle of a bucket, by its factor: no value in it is further away than 10 %. */
const middleOf = (bucket: number): number =>
  bucket === 0 ? 1 : Math.round(2 ** ((bucket - 0.5) / bucketsPerDoubling))

export type Percentiles = { count: number; p50_ms: number; p95_ms: number; p99_ms: number }

/** What a histogram says; null: it has no values. */
export function percentilesOf(histogram: Histogram): Percentiles | null {
  const cells = [...histogram].toSorted(([one], [other]) => one - other)
  const count = cells.reduce((sum, [, amount]) => sum + amount, 0)
  if (count === 0) return null
  const valueAt = (share: number) => {
    const rank = Math.ceil(share * count)
    let seen = 0
    for (const [bucket, amount] of cells) {
      seen += amount
      if (seen >= rank) return middleOf(bucket)
    }
    return middleOf(bucketMax)
  }
  return { count, p50_ms: valueAt(0.5), p95_ms: valueAt(0.95), p99_ms: valueAt(0.99) }
}
