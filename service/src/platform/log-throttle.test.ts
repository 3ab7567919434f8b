import { expect, test, vi } from 'vitest'

import { createLogThrottle } from './log-throttle.ts'
import type { Log } from './log.ts'

test('a problem that repeats is logged once in ten seconds, also after the clock was set back', () => {
  let nowMs = 0
  const problem = vi.fn<Log['problem']>()
  const log: Log = { problem, event: () => undefined, request: () => undefined }
  const report = createLogThrottle({ log, now: () => new Date(nowMs) })
  const error = new Error('away')
  for (const atMs of [0, 9999, 10_000, 15_000, 20_000, -1_000_000]) {
    nowMs = atMs
    report('ledger_unavailable', error)
  }
  expect(problem.mock.calls).toEqual(Array.from({ length: 4 }, () => ['ledger_unavailable', error]))
})
