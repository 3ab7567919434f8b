/** The quantile of the normal distribution for 95 %. */
const z = 1.959964

/**
 * Between which bounds the true share lies with a probability of 95 %, if `hits` of `trials` were seen: the interval by
 * Wilson, which is right for few trials and rare hits too.
 */
export function wilsonInterval(hits: number, trials: number): { low: number; high: number } {
  if (trials === 0) return { low: 0, high: 1 }
  const share = hits / trials
  const centre = share + z ** 2 / (2 * trials)
  const reach = z * Math.sqrt((share * (1 - share)) / trials + z ** 2 / (4 * trials ** 2))
  const scale = 1 + z ** 2 / trials
  return {
    low: Math.max(0, (centre - reach) / scale),
    high: Math.min(1, (centre + reach) / scale),
  }
}
