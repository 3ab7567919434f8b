import { expect, test } from 'vitest'

import { hardlyLimited } from './support/hardly-limited.ts'
import type { Attack } from './support/neighbours/attack.ts'
import { largePages } from './support/neighbours/large-pages.ts'
import {
  functionCalls,
  manyTools,
  redactedTexts,
  shortTexts,
} from './support/neighbours/large-requests.ts'
import { type Measured, measureNeighbour } from './support/neighbours/measure.ts'
import { slowPatterns } from './support/neighbours/slow-patterns.ts'
import { useStack } from './support/use-stack.ts'

// One organization makes a process work as hard as it can, and another one calls a model meanwhile, through the same process.
// Each attack runs for a few seconds beside a quiet measurement of the same length; ATTACK_SECONDS=20 measures longer.
//
// To add an attack, write an `Attack` in support/neighbours (a name, and a function that sends requests until it is told to
// stop) and add it to the list. Everything else is done here: organizations, measuring, memory, bounds.

const attacks: readonly Attack[] = [
  redactedTexts,
  functionCalls,
  manyTools,
  shortTexts,
  slowPatterns,
  largePages,
]

const seconds = Number(process.env['ATTACK_SECONDS'] ?? 4)
/** A busy machine can spoil a round, but not every one. */
const rounds = 3
/**
 * What is measured: 100 to 350 ms where a quiet process answers in 10 to 30 ms, which is more than the three times that we want,
 * and half as much again on a slower machine. Without slices, threads and limits it was seconds.
 */
const slowerMost = 12
/**
 * A single stage of reading a large body cannot be divided, and may take this long. A quiet process answers sooner, and three
 * times as long would then be less than one such stage.
 */
const stageMs = 50
const grownMostMegabytes = 400

const stack = useStack({ processes: 1, environment: hardlyLimited() })

const slowerBy = ({ attacked, quiet }: Measured) => attacked.p99 / Math.max(quiet.p99, stageMs)

test.each(attacks)('$name: others are hardly slower, and memory stays bounded', async (attack) => {
  let best: Measured | undefined
  for (let round = 0; round < rounds; round++) {
    const measured = await measureNeighbour(stack(), attack, seconds)
    expect(measured.failures).toEqual([])
    expect(measured.grownMegabytes).toBeLessThan(grownMostMegabytes)
    if (!best || slowerBy(measured) < slowerBy(best)) best = measured
    if (slowerBy(best) <= slowerMost) return
  }
  expect(best && slowerBy(best)).toBeLessThanOrEqual(slowerMost)
})
