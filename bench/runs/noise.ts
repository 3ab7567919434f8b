import { median } from '../cpu/cpu-table.ts'

/**
 * How much something else than the measurement had of the machine: the share of all cores that other processes took, and by how
 * much the windows of the bare proxy differ, which does the same work in each of them.
 */
export type Noise = { othersShare: number; bareSpread: number }

const othersShareMax = 0.15
const bareSpreadMax = 1.5

export const isNoisy = ({ othersShare, bareSpread }: Noise) =>
  othersShare > othersShareMax || bareSpread > bareSpreadMax

/** The median window of the bare proxy as a multiple of its least, of the most uneven series. 1 without a series. */
export function spreadOf(series: readonly (readonly number[])[]): number {
  const spreads = series
    .filter((windows) => windows.length > 1)
    .map((windows) => median(windows) / Math.min(...windows))
  return Math.max(1, ...spreads)
}

export const describeNoise = ({ othersShare, bareSpread }: Noise) =>
  `other processes took ${(othersShare * 100).toFixed(0)} % of the cores, the median window of the bare proxy is ${bareSpread.toFixed(2)} times its least`
