import { goOnLater } from './shared-turns.ts'
import type { Steps } from './steps.ts'

/** A piece of work runs one computation after another. The time of all of them decides whether the work counts as long. */
export type BackgroundWork = {
  /** Runs the steps to their end. Rejects with the reason of the signal if that aborts before. */
  run<Result>(steps: Steps<Result>): Promise<Result>
  /** How long the work has run so far. */
  usedMs(): number
}

type Task = {
  /** Returns whether the task is done. */
  advance(untilMs: number): boolean
  usedMs(): number
}

/** No organization has this name: all background work together gets the share of one organization. */
const owner = 'background'
/** Work that has run for longer than this lets shorter work go first. */
const shortMs = 100
/** One slice out of this many goes to long work, so that it ends even if short work keeps arriving. */
const slicesPerLong = 4

const short: Task[] = []
const long: Task[] = []
let isRunning = false
let slices = 0

/**
 * Starts a piece of work that shares the event loop with everything else in this process, in slices (`shared-turns.ts`). Work
 * that turns out to be long takes turns with other long work, and mostly runs after short work.
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

/** Returns whether all work is done. */
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
