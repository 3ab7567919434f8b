/** Computations that take long, in steps of a few milliseconds. */
type Steps<Result> = Generator<unknown, Result, void>

/** One after the other: what a piece of work runs shares the time after which it counts as long. */
export type BackgroundWork = {
  /** Runs the steps to their end. Rejects with the reason of the signal if that aborts before. */
  run<Result>(steps: Steps<Result>): Promise<Result>
  /** The time that it has had. */
  usedMs(): number
}

type Task = {
  /** Returns whether it has ended. */
  advance(): boolean
  usedMs(): number
}

/** How long all background work together goes on before other work of the event loop gets its turn. */
const sliceMs = 8
/** Work that needs more than this waits for what needs less. */
const shortMs = 100
/** One slice of so many belongs to long work, so that it ends however much short work comes. */
const slicesPerLong = 4

const short: Task[] = []
const long: Task[] = []
let isRunning = false
let slices = 0

/**
 * Starts a piece of work that shares the event loop with everything else in this process. Of all such work there is one
 * slice in a turn of the event loop, so much of it holds up nobody more than a little. Work that turns out to be
 * long goes on in turn with other long work, and mostly after the short.
 */
export function startBackgroundWork(signal?: AbortSignal): BackgroundWork {
  let usedMs = 0
  return {
    usedMs: () => usedMs,
    run: (steps) =>
      new Promise((resolve, reject) => {
        put({
          usedMs: () => usedMs,
          advance() {
            const startedMs = performance.now()
            try {
              signal?.throwIfAborted()
              return runSlice(steps, startedMs + sliceMs, resolve)
            } catch (error) {
              reject(error as Error)
              return true
            } finally {
              usedMs += performance.now() - startedMs
            }
          },
        })
        if (!isRunning) setImmediate(runNext)
        isRunning = true
      }),
  }
}

function put(task: Task) {
  if (task.usedMs() < shortMs) short.push(task)
  else long.push(task)
}

function runNext() {
  const isLongsTurn = ++slices % slicesPerLong === 0
  const task = (isLongsTurn && long.shift()) || short.shift() || long.shift()
  if (task && !task.advance()) {
    // Short work is finished before the next begins.
    if (task.usedMs() < shortMs) short.unshift(task)
    else long.push(task)
  }
  isRunning = short.length + long.length > 0
  if (isRunning) setImmediate(runNext)
}

function runSlice<Result>(
  steps: Steps<Result>,
  untilMs: number,
  onEnd: (result: Result) => void,
): boolean {
  do {
    const step = steps.next()
    if (!step.done) continue
    onEnd(step.value)
    return true
  } while (performance.now() < untilMs)
  return false
}
