import fc from 'fast-check'
import { expect, test } from 'vitest'

import type { ProcessGroup } from './rollout-store.ts'
import { countProcesses } from './rollout.ts'

const group = (given: Partial<ProcessGroup> = {}): ProcessGroup => ({
  processes: 1,
  isLive: true,
  isApplied: true,
  isFailed: false,
  version: 1,
  ...given,
})

test('with no process, or none that is live, nothing is known to be applied', () => {
  const none = { live: 0, applied: 0, pending: 0, failed: 0, silent: 0 }
  expect(countProcesses([])).toEqual({ is_applied: false, processes: none, versions: [] })
  expect(countProcesses([group({ isLive: false, processes: 2 })])).toEqual({
    is_applied: false,
    processes: { ...none, silent: 2 },
    versions: [],
  })
})

test('applied means that every live process has it, whatever the silent ones have', () => {
  const silent = group({ isLive: false, isApplied: false, processes: 3 })
  expect(countProcesses([group({ processes: 2 }), silent])).toEqual({
    is_applied: true,
    processes: { live: 2, applied: 2, pending: 0, failed: 0, silent: 3 },
    versions: [{ version: 1, processes: 2 }],
  })
})

test('a process that lags counts as pending, one that could not apply the change as failed', () => {
  const groups = [
    group({ processes: 4, version: 2 }),
    group({ processes: 2, isApplied: false, version: 1 }),
    group({ processes: 1, isApplied: false, isFailed: true, version: 1 }),
  ]
  expect(countProcesses(groups)).toEqual({
    is_applied: false,
    processes: { live: 7, applied: 4, pending: 2, failed: 1, silent: 0 },
    versions: [
      { version: 2, processes: 4 },
      { version: 1, processes: 3 },
    ],
  })
})

test('a process that failed for another policy of the organization, but runs this one, has applied it', () => {
  expect(countProcesses([group({ isFailed: true })])).toMatchObject({
    is_applied: true,
    processes: { applied: 1, failed: 0 },
  })
})

test('versions come newest first, none last, at most a hundred of them', () => {
  const shown = (...versions: (number | null)[]) =>
    countProcesses(versions.map((version) => group({ version }))).versions
  expect(shown(2, null, 10, 9).map(({ version }) => version)).toEqual([10, 9, 2, null])
  expect(shown(1, 1, null, null)).toEqual([
    { version: 1, processes: 2 },
    { version: null, processes: 2 },
  ])
  const many = Array.from({ length: 150 }, (_, index) => index + 1)
  expect(shown(...many).map(({ version }) => version)).toEqual(many.toReversed().slice(0, 100))
})

test('every process is counted exactly once', () => {
  const anyGroup: fc.Arbitrary<ProcessGroup> = fc.record({
    processes: fc.integer({ min: 1, max: 50 }),
    isLive: fc.boolean(),
    isApplied: fc.boolean(),
    isFailed: fc.boolean(),
    version: fc.option(fc.integer({ min: 1, max: 5 })),
  })
  const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0)
  fc.assert(
    fc.property(fc.array(anyGroup, { maxLength: 20 }), (groups) => {
      const { is_applied, processes, versions } = countProcesses(groups)
      const { live, applied, pending, failed, silent } = processes
      expect(applied + pending + failed).toBe(live)
      expect(live + silent).toBe(sum(groups.map((each) => each.processes)))
      expect(sum(versions.map((each) => each.processes))).toBe(live)
      expect(is_applied).toBe(live > 0 && applied === live)
    }),
  )
})
