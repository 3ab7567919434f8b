import { expect, test } from 'vitest'

import { costsOf, cpuFiguresOf, cpuTableOf, median } from './cpu-table.ts'

const window = (service: number, postgres = 0, redis = 0, worker = 0) => ({
  perSecond: 100,
  service,
  worker,
  postgres,
  redis,
  upstream: 50,
})
const results = [
  { name: 'bare proxy', windows: [window(90), window(100), window(900)], memoryMegabytes: 60 },
  {
    name: 'Gatehouse',
    windows: [window(400, 200, 60, 40), window(300, 150, 50, 30), window(2000, 900, 300, 90)],
    memoryMegabytes: 200,
  },
  { name: 'Portkey', windows: [window(800), window(700), window(900)], memoryMegabytes: 100 },
]

test('the median of an even number is between the two in the middle', () => {
  expect(median([4, 1, 3, 2])).toBe(2.5)
  expect(median([3, 1, 2])).toBe(2)
})

test('figures are of the least windows, because disturbances only add; medians stand beside them', () => {
  expect(cpuFiguresOf('plain', results)).toEqual({
    plainCpu: { value: 300 / 90, median: 4 },
    plainPostgres: { value: 150 / 90, median: 2 },
    plainWorker: { value: 30 / 90, median: 0.4 },
    plainRedis: { value: 50 / 90, median: 0.6 },
    plainPortkey: { value: 300 / 700, median: 0.5 },
    memory: { value: 200 },
  })
})

test('costs are medians, so that one disturbed window has no effect', () => {
  expect(costsOf(results)).toEqual({
    bare: 100,
    service: 400,
    worker: 40,
    postgres: 200,
    redis: 60,
  })
})

test('the table shows the median and the least of each target', () => {
  expect(cpuTableOf(results)).toMatch(
    /^Gatehouse +100 +400 \(300\) +4\.00 +40 \(30\) +0\.40 +200 \(150\) +2\.00/m,
  )
  expect(cpuTableOf(results)).toMatch(/^Portkey +100 +800 \(700\) +8\.00 +50 \(50\) +100$/m)
})
