import { expect, test } from 'vitest'

import { judgeGrid, localGrid, remoteGrid } from '#text/windows/window-grid.ts'

import { holdOfAnswer } from './hold-back.ts'

test.each([
  ['the scorer in this process', 'none', [localGrid], 128],
  ['a remote scorer', 'none', [remoteGrid()], 128],
  ['a remote scorer with large steps', 12, [localGrid, remoteGrid(256)], 288],
  ['the judge', 0, [remoteGrid(), judgeGrid], 288],
  ['a rule that holds more', 500, [remoteGrid()], 500],
  ['a rule that needs all of the answer', 'full', [remoteGrid()], 'full'],
  ['rules alone', 12, [], 12],
] as const)('%s: what is held back is the longest of rules and windows', (_, hold, grids, most) => {
  expect(holdOfAnswer({ hold, grids, rewriting: [null] })).toBe(most)
})

test('redaction and guardrails hold back more, unless nothing leaves before the end', () => {
  const rewriting = [{ hold: 520 }, { hold: 100 }]
  expect(holdOfAnswer({ hold: 'none', grids: [remoteGrid()], rewriting })).toBe(748)
  expect(holdOfAnswer({ hold: 'full', grids: [remoteGrid()], rewriting })).toBe('full')
})
