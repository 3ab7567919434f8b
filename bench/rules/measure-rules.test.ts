import { expect, test } from 'vitest'

import { addedCpuOf, addedFirstTokenOf } from './measure-rules.ts'

const result = (name: string, ...services: number[]) => ({
  name,
  memoryMegabytes: 100,
  windows: services.map((service) => ({
    perSecond: 100,
    service,
    worker: 0,
    postgres: 0,
    redis: 0,
    upstream: 0,
  })),
})

test('added CPU is of the least windows, in units of the bare proxy', () => {
  const compared = {
    bare: result('bare proxy', 200, 300),
    without: result('without', 1000, 2000),
    ruled: result('ruled', 1900, 1050),
  }
  expect(addedCpuOf('plain', compared)).toEqual({ rulesPlainCpu: { value: 0.25 } })
  expect(addedCpuOf('stream', compared)).toEqual({ rulesStreamCpu: { value: 0.25 } })
})

test('an added time may be what three times the jitter of the machine explains', () => {
  const added = (ruled: number, jitter: number) =>
    addedFirstTokenOf({
      bare: { p50: 2, p99: 2 + jitter },
      without: { p50: 5, p99: 10 },
      ruled: { p50: 5, p99: ruled },
    }).rulesFirstTokenP99
  expect(added(12.5, 0.1)).toEqual({ value: 2.5, holds: true })
  expect(added(16, 1)).toEqual({ value: 6, holds: false })
  expect(added(16, 2)).toEqual({ value: 6, holds: true })
})
