import { expect, test } from 'vitest'

import { againstTableOf } from './against-table.ts'

const measured = (service: number, p50: number, memoryMegabytes = 100) => ({
  cpu: {
    name: '',
    memoryMegabytes,
    windows: [service, service * 3].map((cost) => ({
      perSecond: 100,
      service: cost,
      worker: cost / 2,
      postgres: cost / 4,
      redis: cost / 10,
      upstream: 1,
    })),
  },
  times: [
    { p50, p99: p50 * 2, firstP99: p50 * 1.5 },
    { p50: p50 + 9, p99: p50 + 90, firstP99: p50 + 50 },
  ],
})

const compared = { bare: measured(100, 1), before: measured(800, 5), now: measured(400, 3, 50) }

test('both copies stand beside each other by their least windows, as ratios', () => {
  const table = againstTableOf('10fe808', { plain: compared, stream: compared })
  const cells = (what: string) =>
    table
      .split('\n')
      .find((line) => line.startsWith(`| ${what} `))
      ?.split('|')
      .map((cell) => cell.trim())
      .slice(2, 5)
  expect(cells('CPU, plain ÷ bare proxy')).toEqual(['8.00', '4.00', '2.00'])
  expect(cells('worker, streamed ÷ bare proxy')).toEqual(['4.00', '2.00', '2.00'])
  expect(cells('added time, plain, p50')).toEqual(['4.00 ms', '2.00 ms', '2.00'])
  expect(cells('added time, streamed, first token p99')).toEqual(['6.00 ms', '3.00 ms', '2.00'])
  expect(cells('added time, plain, first token p99')).toBeUndefined()
  expect(cells('memory after full load, plain')).toEqual(['100.00 MB', '50.00 MB', '2.00'])
})

test('an added time below zero is noise, and has no ratio', () => {
  const faster = { ...compared, now: measured(400, 0.5) }
  const table = againstTableOf('10fe808', { plain: faster, stream: compared })
  expect(table).toMatch(/^\| added time, plain, p50 +\| 4\.00 ms +\| -0\.50 ms +\| +\|$/m)
})
