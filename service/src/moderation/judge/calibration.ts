/** A raw score of a judge, and the basis points it stands for. */
export type CalibrationPoint = readonly [raw: number, basisPoints: number]

/** Scores of different models do not mean the same; a table per judge makes them comparable with thresholds. */
export type Calibration = {
  /** Recorded with every decision, and part of the key of cached ones. */
  readonly version: string
  toBasisPoints(judgeId: string, raw: number): number
}

/** For judges without a table: 0.5 is 5000. */
export const uncalibrated: Calibration = {
  version: 'identity',
  toBasisPoints: (_, raw) => Math.round(raw * 10_000),
}

const pointsMax = 100

/**
 * Straight lines between the points of a judge's table. It must begin at 0, end at 1 and never fall: a text that a judge
 * finds worse must not get a lower score.
 */
export function createCalibration(
  version: string,
  tables: Readonly<Record<string, readonly CalibrationPoint[]>>,
): Calibration {
  for (const [judgeId, points] of Object.entries(tables)) checkTable(judgeId, points)
  return {
    version,
    toBasisPoints(judgeId, raw) {
      const points = Object.hasOwn(tables, judgeId) ? tables[judgeId] : undefined
      return points
        ? Math.round(interpolate(points, raw))
        : uncalibrated.toBasisPoints(judgeId, raw)
    },
  }
}

function checkTable(judgeId: string, points: readonly CalibrationPoint[]) {
  const complain = (what: string) => new Error(`The calibration table of ${judgeId} ${what}.`)
  if (points.length < 2 || points.length > pointsMax)
    throw complain(`must have 2 to ${pointsMax} points`)
  if (points[0]?.[0] !== 0 || points.at(-1)?.[0] !== 1)
    throw complain('must begin at 0 and end at 1')
  for (const [index, [raw, basisPoints]] of points.entries()) {
    if (!(basisPoints >= 0 && basisPoints <= 10_000))
      throw complain('must have 0 to 10000 basis points')
    const before = points[index - 1]
    if (before && !(raw > before[0] && basisPoints >= before[1])) throw complain('must rise')
  }
}

function interpolate(points: readonly CalibrationPoint[], raw: number): number {
  const end = points.findIndex(([at]) => at >= raw)
  const [toRaw, to] = points[end] ?? [1, 10_000]
  const [fromRaw, from] = points[end - 1] ?? [0, to]
  return toRaw === fromRaw ? to : from + ((raw - fromRaw) / (toRaw - fromRaw)) * (to - from)
}
