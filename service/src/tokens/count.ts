import { type Encoding, loadRanks } from './ranks.ts'
import { pieceEnds } from './split.ts'
import { createTextCounter, type TextCounter } from './text-counter.ts'

const counters = new Map<Encoding, Promise<TextCounter>>()

/** The counter of an encoding: made once in each thread, at its first use. */
export function loadCounter(encoding: Encoding): Promise<TextCounter> {
  const known = counters.get(encoding)
  if (known) return known
  const counter = createCounter(encoding)
  counters.set(encoding, counter)
  return counter
}

async function createCounter(encoding: Encoding): Promise<TextCounter> {
  return createTextCounter({ ranks: await loadRanks(encoding), pieceEnd: pieceEnds[encoding] })
}

/** Asked after every step; it may wait, and what it throws ends the count. */
export type AfterStep = () => Promise<void> | undefined

/** The tokens of each text, in the same order. */
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
      // Without a reason to wait there is none to give up one's turn.
      if (wait) await wait
      if (!step.done) continue
      counts.push(step.value)
      break
    }
  }
  return counts
}
