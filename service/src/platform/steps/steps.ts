import { goOnLater, noteBegun, timeToBegin } from './shared-turns.ts'

/** For whom steps are taken: turns and threads are shared out among owners, and given up when the signal aborts. */
export type Asker = {
  readonly owner: string
  readonly signal: AbortSignal
  /** Called before a long step runs outside the event loop, so that the asker can release what others wait for. */
  onElsewhere?(): void
}

/** A step that may take long: an asker that can wait has it taken outside the event loop. */
export type LongStep = { here(): void; elsewhere(asker: Asker): Promise<void> }

/** Work in steps, each of which takes a few milliseconds at most, but for those that say otherwise. */
export type Steps<Result> = Generator<LongStep | undefined, Result, void>

type Reached<Result> = IteratorResult<LongStep | undefined, Result>

/** One long step that has a result. Where it cannot be taken elsewhere, its error is thrown. */
export function* takeElsewhere<Result>(
  here: () => Result,
  elsewhere: (asker: Asker) => Promise<Result>,
): Steps<Result> {
  let taken: { result: Result } | null = null
  yield {
    here: () => (taken = { result: here() }),
    elsewhere: async (asker) => void (taken = { result: await elsewhere(asker) }),
  }
  if (!taken) throw new Error('A long step was not taken.')
  return (taken as { result: Result }).result
}

/**
 * Runs steps without holding up the event loop: what is not done soon goes on in the slices that all such work of this process
 * shares. Where a long step cannot be taken elsewhere, its error is thrown into the steps: they may go on without it. Most
 * work is short: its result is there at once, and costs no promise.
 */
export function runInTurns<Result>(steps: Steps<Result>, asker: Asker): Result | Promise<Result> {
  const reached = begin(asker.owner, steps)
  return reached?.done ? reached.value : goOnInTurns(steps, reached, asker)
}

/** Takes steps at once, as long as the owner may; undefined where it has to wait. */
function begin<Result>(
  owner: string,
  steps: Steps<Result>,
  failed: Failure | null = null,
): Reached<Result> | undefined {
  const mostMs = timeToBegin(owner)
  if (mostMs === 0) return undefined
  const startedMs = performance.now()
  try {
    return takeSteps(steps, startedMs + mostMs, failed)
  } finally {
    noteBegun(owner, performance.now() - startedMs)
  }
}

type Failure = { error: unknown }

/** Takes steps until then, or until one is long. */
function takeSteps<Result>(
  steps: Steps<Result>,
  untilMs: number,
  failed: Failure | null,
): Reached<Result> {
  let step = failed ? steps.throw(failed.error) : steps.next()
  while (!step.done && !step.value && performance.now() < untilMs) step = steps.next()
  return step
}

/** Where steps have got to, and the long one that is being taken elsewhere. */
type Turn<Result> = { step: Reached<Result>; waiting: Promise<void> | null }

/** A long step starts at once, because it may be over in a moment. */
const open = <Result>(step: Reached<Result>, asker: Asker): Turn<Result> => ({
  step,
  waiting: step.done || !step.value ? null : startElsewhere(step.value, asker),
})

async function startElsewhere(step: LongStep, asker: Asker) {
  asker.onElsewhere?.()
  await step.elsewhere(asker)
}

async function goOnInTurns<Result>(
  steps: Steps<Result>,
  begun: Reached<Result> | undefined,
  asker: Asker,
): Promise<Result> {
  let turn = begun ? open(begun, asker) : await takeTurn(steps, null, asker)
  while (!turn.step.done) {
    const { waiting } = turn
    const failed = waiting && (await failureOf(waiting))
    // It may have been short: only its result is waited for, and not a turn as well.
    const step = waiting ? begin(asker.owner, steps, failed) : undefined
    turn = step ? open(step, asker) : await takeTurn(steps, failed, asker)
  }
  return turn.step.value
}

async function failureOf(waiting: Promise<void>): Promise<Failure | null> {
  try {
    await waiting
    return null
  } catch (error) {
    return { error }
  }
}

/**
 * Goes on with the steps when it is their owner's turn, in as many turns as it takes to their end or to a long one. No asker waits
 * for them when the signal aborts.
 */
function takeTurn<Result>(
  steps: Steps<Result>,
  failure: Failure | null,
  asker: Asker,
): Promise<Turn<Result>> {
  return new Promise((resolve, reject) => {
    let failed = failure
    goOnLater(asker.owner, {
      advance(untilMs) {
        try {
          asker.signal.throwIfAborted()
          const step = takeSteps(steps, untilMs, failed)
          failed = null
          if (!step.done && !step.value) return false
          resolve(open(step, asker))
        } catch (error) {
          reject(error as Error)
        }
        return true
      },
    })
  })
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
