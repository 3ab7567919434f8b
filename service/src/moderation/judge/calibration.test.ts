import fc from 'fast-check'
import { expect, test } from 'vitest'

import { type CalibrationPoint, createCalibration, uncalibrated } from './calibration.ts'

test('without a table a score is its own basis points', () => {
  expect([0, 0.00004, 0.5, 1].map((raw) => uncalibrated.toBasisPoints('any', raw))).toEqual([
    0, 0, 5000, 10_000,
  ])
  const calibration = createCalibration('2026-11', {})
  expect(calibration.toBasisPoints('constructor', 0.5)).toBe(5000)
})

test('a table of a judge holds for that judge, with straight lines between its points', () => {
  const table: CalibrationPoint[] = [
    [0, 0],
    [0.5, 2000],
    [1, 10_000],
  ]
  const calibration = createCalibration('2026-11', { 'judge-a': table })
  expect(calibration.version).toBe('2026-11')
  const scores = [0, 0.25, 0.5, 0.75, 1].map((raw) => calibration.toBasisPoints('judge-a', raw))
  expect(scores).toEqual([0, 1000, 2000, 6000, 10_000])
  expect(calibration.toBasisPoints('judge-b', 0.5)).toBe(5000)
})

test('a worse text never gets a lower score', () => {
  const inner = fc.uniqueArray(fc.double({ min: 0.01, max: 0.99, noNaN: true }), { maxLength: 5 })
  const table = inner.chain((raws) =>
    fc
      .array(fc.integer({ min: 0, max: 10_000 }), {
        minLength: raws.length + 2,
        maxLength: raws.length + 2,
      })
      .map((values) => {
        const sorted = values.toSorted((one, other) => one - other)
        return [0, ...raws.toSorted((one, other) => one - other), 1].map(
          (raw, index): CalibrationPoint => [raw, sorted[index]!],
        )
      }),
  )
  const raw = fc.double({ min: 0, max: 1, noNaN: true })
  fc.assert(
    fc.property(table, raw, raw, (points, one, other) => {
      const { toBasisPoints } = createCalibration('v', { judge: points })
      const [low, high] = [Math.min(one, other), Math.max(one, other)]
      expect(toBasisPoints('judge', low)).toBeLessThanOrEqual(toBasisPoints('judge', high))
    }),
  )
})

test.each<[string, CalibrationPoint[]]>([
  ['2 to 100 points', [[0, 0]]],
  [
    'begin at 0',
    [
      [0.1, 0],
      [1, 10_000],
    ],
  ],
  [
    'end at 1',
    [
      [0, 0],
      [0.9, 10_000],
    ],
  ],
  [
    'rise',
    [
      [0, 5000],
      [1, 4000],
    ],
  ],
  [
    'rise',
    [
      [0, 0],
      [0.5, 1],
      [0.5, 2],
      [1, 3],
    ],
  ],
  [
    '0 to 10000 basis points',
    [
      [0, 0],
      [1, 10_001],
    ],
  ],
  [
    '0 to 10000 basis points',
    [
      [0, Number.NaN],
      [1, 10_000],
    ],
  ],
])('a table must have/must %s', (complaint, points) => {
  expect(() => createCalibration('v', { judge: points })).toThrow(complaint)
})
