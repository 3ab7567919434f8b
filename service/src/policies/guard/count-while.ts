/** How many elements, from the first on, satisfy a condition that holds up to some element and for none after it. */
export function countWhile<T>(sorted: readonly T[], holds: (element: T) => boolean): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (holds(sorted[middle] as T)) low = middle + 1
    else high = middle
  }
  return low
}
