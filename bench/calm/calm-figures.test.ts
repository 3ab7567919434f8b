import { expect, test } from 'vitest'

import { calmFiguresOf, findCheck, findInvalid, findNothingAdded } from './calm-figures.ts'

const windows = (...p50s: number[]) => p50s.map((p50) => ({ p50, p99: p50 * 10, firstP99: p50 }))

test('added times are compared by the medians of both blocks', () => {
  const quiet = { bare: windows(1, 1, 9), gatehouse: windows(3, 3, 1) }
  const busy = { bare: windows(2, 2, 2), gatehouse: windows(2, 5, 5) }
  expect(calmFiguresOf('plain', { quiet, busy })).toEqual({
    calmPlainP50: { value: 1.5 },
    calmPlainP99: { value: 1.5 },
  })
  expect(calmFiguresOf('stream', { quiet, busy })).toHaveProperty('calmStreamP99')
})

test('without an added time in both blocks there is no ratio', () => {
  const added = { bare: windows(1, 1, 1), gatehouse: windows(2, 2, 2) }
  const equal = { bare: windows(1, 1, 1), gatehouse: windows(1, 1, 1) }
  const quicker = { bare: windows(2, 2, 2), gatehouse: windows(1, 1, 1) }
  expect(findNothingAdded({ quiet: added, busy: added })).toBeUndefined()
  expect(findNothingAdded({ quiet: equal, busy: added })).toMatch(/0\.000 ms .* p50 of the quiet/)
  expect(findNothingAdded({ quiet: quicker, busy: added })).toMatch(/-1\.000 ms .* quiet/)
  expect(findNothingAdded({ quiet: added, busy: quicker })).toMatch(/busy/)
  const onlyP99 = { ...added, bare: added.bare.map((each) => ({ ...each, p99: 30 })) }
  expect(findNothingAdded({ quiet: onlyP99, busy: added })).toMatch(/-10\.000 ms to the p99/)
})

const check = { at: 1500, organizations: 1001 }
const valid = { startedAt: 1000, endedAt: 2000, check, isBehind: [true, true] }

test('windows count when the sink was behind in all of them, and the ledger was checked among them', () => {
  expect(findInvalid(valid)).toBeUndefined()
  expect(findInvalid({ ...valid, isBehind: [true, false] })).toMatch(/after 1 of 2 windows/)
  expect(findInvalid({ ...valid, check: undefined })).toMatch(/did not check/)
  expect(findInvalid({ ...valid, check: { ...check, at: 900 } })).toMatch(/before the windows/)
  expect(findInvalid({ ...valid, check: { ...check, at: 2100 } })).toMatch(/after the windows/)
  expect(findInvalid({ ...valid, check: { ...check, organizations: 7 } })).toMatch(/checked 7 org/)
})

test('the check is read from the log of the worker', () => {
  const line = { level: 30, time: '2030-01-01T00:00:01.000Z', event: 'ledger_checked' }
  const log = `{"event":"started"}\n${JSON.stringify({ ...line, organizations: 1002 })}\n`
  expect(findCheck(log)).toEqual({ at: Date.UTC(2030, 0, 1, 0, 0, 1), organizations: 1002 })
  expect(findCheck('{"event":"started"}\n')).toBeUndefined()
})
