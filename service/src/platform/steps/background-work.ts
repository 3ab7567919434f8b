import { goOnLater } from './shared-turns.ts'
import type { Steps } from './steps.ts'

/** One after the other: what a piece of work runs shares the time after which it counts as long. */
export type BackgroundWork = {
  /** Runs the steps to their end. Rejects with the reason of the signal if that aborts before. */
  run<Result>(steps: Steps<Result>): Promise<Result>
  /** The time that it has had. */
  usedMs(): number
}

type Task = {
  /** Returns whether it has ended. */
  advance(untilMs: number): boolean
  usedMs(): number
}

/** No organization has this name: all background work together is served as one of them would be. */
const owner = 'background'
/** Work that needs more than this waits for what needs less. */
const shortMs = 100
/** One slice in this number belongs to long work, so that it ends however much short work comes. */
const slicesPerLong = 4

const short: Task[] = []
const long: Task[] = []
let isRunning = false
let slices = 0

/**
 * Starts a piece of work that shares the event loop with everything else in this process, in slices (`shared-turns.ts`). Work
 * that turns out to be long goes on in turn with other long work, and mostly after the short.
 */
export function startBackgroundWork(signal?: AbortSignal): BackgroundWork {
  let usedMs = 0
  return {
    usedMs: () => usedMs,
    run: (steps) =>
      new Promise((resolve, reject) => {
        put({
          usedMs: () => usedMs,
          advance(untilMs) {
            const startedMs = performance.now()
            try {
              signal?.throwIfAborted()
              return runSlice(steps, untilMs, resolve)
            } catch (error) {
              reject(error as Error)
              return true
            } finally {
              usedMs += performance.now() - startedMs
            }
          },
        })
        if (!isRunning) goOnLater(owner, { advance: runNext })
        isRunning = true
      }),
  }
}

function put(task: Task) {
  if (task.usedMs() < shortMs) short.push(task)
  else long.push(task)
}

/** Returns whether there is no more work. */
function runNext(untilMs: number): boolean {
  const isLongsTurn = ++slices % slicesPerLong === 0
  const task = (isLongsTurn && long.shift()) || short.shift() || long.shift()
  if (task && !task.advance(untilMs)) {
    // Short work is finished before the next begins.
    if (task.usedMs() < shortMs) short.unshift(task)
    else long.push(task)
  }
  isRunning = short.length + long.length > 0
  return !isRunning
}

function runSlice<Result>(
  steps: Steps<Result>,
  untilMs: number,
  onEnd: (result: Result) => void,
): boolean {
  do {
    const step = steps.next()
    if (step.done) {
      onEnd(step.value)
      return true
    }
    step.value?.here()
  } while (performance.now() < untilMs)
  return false
}
