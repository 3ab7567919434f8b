import { type Encoding, loadRanks } from './ranks.ts'
import { pieceEnds } from './split.ts'
import { createTextCounter, type TextCounter } from './text-counter.ts'

const counters = new Map<Encoding, Promise<TextCounter>>()

/** Returns the counter of an encoding, which is created once per thread, on first use. */
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
