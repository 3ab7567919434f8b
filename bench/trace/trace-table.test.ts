import { expect, test } from 'vitest'

import { joinMarks, traceTableOf } from './trace-table.ts'

test('windows are joined, and steps stand in the order of a call with their percentiles', () => {
  const marks = joinMarks([
    { 'whole call': [5, 6], 'hold, PostgreSQL': [1], 'a new step': [9] },
    { 'hold, PostgreSQL': [3, 2] },
  ])
  const lines = traceTableOf('plain', marks).split('\n').slice(2)
  const cells = lines.map((line) => line.split('|').map((cell) => cell.trim()))
  expect(cells.map((row) => row.slice(1, -1))).toEqual([
    ['hold, PostgreSQL', '3', '2.00', '3.00', '3.00'],
    ['whole call', '2', '5.00', '6.00', '6.00'],
    ['a new step', '1', '9.00', '9.00', '9.00'],
  ])
})
