import { setImmediate } from 'node:timers/promises'

/** For whom steps are taken elsewhere: that place is shared out among owners, and given up when the signal aborts. */
export type Asker = { readonly owner: string; readonly signal: AbortSignal }

/** A step that may take long: whoever can wait has it taken outside the event loop. */
export type LongStep = { here(): void; elsewhere(asker: Asker): Promise<void> }

/** Work in steps, each of which takes a few milliseconds at most, but for those that say otherwise. */
export type Steps<Result> = Generator<LongStep | undefined, Result, void>

/** How long work goes on before other work of the event loop gets its turn. */
const busyMaxMs = 8

/**
 * Runs steps without holding up the event loop. Where a long step cannot be taken elsewhere, its error is thrown into the
 * steps: they may go on without it. Most work is short: its result is there at once, and costs no promise.
 */
export function runInTurns<Result>(steps: Steps<Result>, asker: Asker): Result | Promise<Result> {
  const busySince = performance.now()
  let step = steps.next()
  while (!step.done) {
    if (step.value || performance.now() - busySince > busyMaxMs) {
      return goOnInTurns(steps, step, { asker, busySince })
    }
    step = steps.next()
  }
  return step.value
}

type Running = { asker: Asker; busySince: number }

async function goOnInTurns<Result>(
  steps: Steps<Result>,
  reached: IteratorResult<LongStep | undefined, Result>,
  { asker, busySince: startedAt }: Running,
): Promise<Result> {
  let busySince = startedAt
  let step = reached
  while (!step.done) {
    let failed: { error: unknown } | null = null
    // What is done elsewhere may be done without a turn of the event loop, so its time counts too.
    try {
      if (step.value) await step.value.elsewhere(asker)
    } catch (error) {
      failed = { error }
    }
    if (performance.now() - busySince > busyMaxMs) {
      await setImmediate()
      busySince = performance.now()
    }
    step = failed ? steps.throw(failed.error) : steps.next()
  }
  return step.value
}

/** Runs all steps at once. */
export function finish<Result>(steps: Steps<Result>): Result {
  let step = steps.next()
  while (!step.done) {
    step.value?.here()
    step = steps.next()
  }
  return step.value
}
