import type { RankTable } from './rank-table.ts'
import { type Encoding, loadRanks } from './ranks.ts'
import { pieceEnds } from './split.ts'
import { createTextCounter, type TextCounter } from './text-counter.ts'

const counters = new Map<Encoding, TextCounter>()

/** Returns the counter of an encoding, which is created once per thread, on first use. */
export async function loadCounter(encoding: Encoding): Promise<TextCounter> {
  return counters.get(encoding) ?? useRanks(encoding, await loadRanks(encoding))
}

/** Creates the counter of an encoding from ranks that were loaded by another thread. */
export function useRanks(encoding: Encoding, ranks: RankTable): TextCounter {
  const counter =
    counters.get(encoding) ?? createTextCounter({ ranks, pieceEnd: pieceEnds[encoding] })
  counters.set(encoding, counter)
  return counter
}

/** Called after every step. It may return a promise to wait for; an error it throws ends the count. */
export type AfterStep = () => Promise<void> | undefined

/** Counts the tokens of each text, in the same order. */
export async function countTexts(
  encoding: Encoding,
  texts: readonly string[],
  afterStep: AfterStep,
): Promise<number[]> {
  const counter = await loadCounter(encoding)
  const counts: number[] = []
  for (const text of texts) {
    const steps = counter(text)
    for (;;) {
      const step = steps.next()
      const wait = afterStep()
      // Awaiting undefined would cost a microtask at every step.
      if (wait) await wait
      if (!step.done) continue
      counts.push(step.value)
      break
    }
  }
  return counts
}
