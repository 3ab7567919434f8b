import { expect, test } from 'vitest'

import { judgeReadiness } from './overall-readiness.ts'

const ready = { number: 1, isServing: true, reasons: [] }
const starting = { number: 2, isServing: false, reasons: ['is starting'] }
const stale = { number: 3, isServing: true, reasons: ['no changes'] }

test.each([
  ['all are ready', [ready, { ...ready, number: 2 }], 'ok', []],
  ['one is starting', [ready, starting], 'degraded', ['process 2: is starting']],
  ['none is ready', [starting], 'unavailable', ['process 2: is starting']],
  ['one serves that should not', [ready, stale], 'unavailable', ['process 3: no changes']],
  [
    'one serves that should not while another starts',
    [ready, starting, stale],
    'unavailable',
    ['process 2: is starting', 'process 3: no changes'],
  ],
])('%s', (_, processes, status, reasons) => {
  expect(judgeReadiness(processes)).toEqual({ status, reasons })
})
