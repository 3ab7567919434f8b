import { beforeAll, expect, test } from 'vitest'

import { hostileTexts } from './hostile-texts.ts'
import type { RankTable } from './rank-table.ts'
import { loadRanks } from './ranks.ts'
import { pieceEnds } from './split.ts'
import { createTextCounter } from './text-counter.ts'

let ranks: RankTable
beforeAll(async () => {
  ranks = await loadRanks('o200k')
  // Warm-up, so that the code is compiled before it is measured.
  for (const make of Object.values(hostileTexts)) countMs(make(20_000))
})

/** The CPU time that this thread takes to count a text with a new counter. */
function countMs(text: string): number {
  const counter = createTextCounter({ ranks, pieceEnd: pieceEnds.o200k })
  const before = process.threadCpuUsage()
  for (const _step of counter(text));
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1000
}

const megabyte = 1024 * 1024
const roundsMax = 4

test.each(Object.entries(hostileTexts))(
  'a megabyte of %s takes less than 15 times as long as a tenth of a megabyte',
  (_name, make) => {
    const [small, large] = [make(megabyte / 10), make(megabyte)]
    // Other processes can slow down one round, but hardly four in a row.
    let ratio = Infinity
    for (let round = 0; round < roundsMax && ratio >= 15; round++) {
      ratio = countMs(large) / Math.max(countMs(small), 5)
    }
    expect(ratio).toBeLessThan(15)
  },
)
