import { setTimeout as sleep } from 'node:timers/promises'

import type { Clock } from '#platform/clock.ts'
import { createLogThrottle } from '#platform/log-throttle.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { createPace } from './pace.ts'

/** Ends a step of a pass: resolves when the next one may begin, rejects when the worker stops. */
export type Rest = () => Promise<void>

/** What a pass of a task gets. */
export type TaskTurn = { signal: AbortSignal; rest: Rest }

/** For work outside of the worker, which is not paced. */
export const withoutRest: Rest = async () => undefined

type Described = {
  /** In `/metrics`. */
  name: string
  /** How long the task waits after a pass. */
  everyMs: number
  /** The largest share of one core that the task may use in each worker. */
  share: number
  /** How long one rest takes at most, whatever the share asks for; `longestRestMs` unless given. */
  restMaxMs?: number
  /** The most rows that one step may touch. Null if the task is one statement that only reads, over all rows. */
  rowsMax: number | null
  /** The code of the log line when a pass fails. */
  failureCode: string
}

/** Work that is repeated: one pass at a time, in steps of at most `rowsMax` rows. */
type Repeated = Described & {
  /** How long the task waits before the first pass; 0 unless given. */
  firstMs?: number
  /** How long the task waits after a pass that failed; `everyMs` unless given. */
  afterFailureMs?: number
  /** One pass. May return how long to wait until the next one instead of `everyMs`. */
  run(turn: TaskTurn): Promise<number | void>
}

/** Work with loops of its own, which do several things at once until the signal aborts. */
type Looping = Described & { loop(pace: SharedPace, signal: AbortSignal): Promise<void> }

/** Keeps several concurrent pieces of work within the share of their task. */
export type SharedPace = {
  /** Counts work as time of the task, without a rest. */
  note(workedMs: number): void
  /**
   * Counts work that has just ended. Returns how long that piece of work must rest so that all of them together keep to the
   * share.
   */
  restAfter(workedMs: number): number
}

export type Task = Repeated | Looping

/** Enough for a step of 3 s with a share of a tenth. A longer step has been waiting for something rather than working. */
const longestRestMs = 30_000

export type TaskDeps = { now: Clock; log: Log; metrics: Metrics }

/** Runs a task until `signal` aborts. Failed passes are logged at most now and then, and do not stop the task. */
export const runTask = (task: Task, deps: TaskDeps, signal: AbortSignal): Promise<void> =>
  'run' in task ? repeat(task, deps, signal) : loop(task, deps, signal)

/**
 * All of a step's time counts as work. Its statements run one after the other, so the database and this process together cannot
 * have worked longer.
 */
async function repeat(task: Repeated, deps: TaskDeps, signal: AbortSignal) {
  const { name, share, restMaxMs = longestRestMs, everyMs, failureCode } = task
  const { firstMs = 0, afterFailureMs = everyMs } = task
  const { metrics } = deps
  const throttle = createLogThrottle(deps)
  const restAfter = createPace(share, restMaxMs)
  let steppingSinceMs = 0
  const endStep = () => {
    const nowMs = performance.now()
    const tookMs = nowMs - steppingSinceMs
    metrics.backgroundSeconds.inc({ task: name }, tookMs / 1000)
    return restAfter(tookMs, nowMs)
  }
  const rest: Rest = async () => {
    const isOver = !(await hasPassed(endStep(), signal))
    // Also after the signal has aborted, because the rest was not work.
    steppingSinceMs = performance.now()
    if (isOver) signal.throwIfAborted()
  }
  const passOnce = async (): Promise<number> => {
    try {
      const waitMs = (await task.run({ signal, rest })) ?? everyMs
      if (!signal.aborted) metrics.backgroundRuns.inc({ task: name })
      return waitMs
    } catch (error) {
      if (signal.aborted) return 0
      metrics.backgroundFailures.inc({ task: name })
      throttle(failureCode, error)
      return afterFailureMs
    }
  }
  for (let waitMs = firstMs; await hasPassed(waitMs, signal);) {
    steppingSinceMs = performance.now()
    const nextMs = await passOnce()
    waitMs = Math.max(endStep(), nextMs)
  }
}

async function loop(task: Looping, { metrics }: TaskDeps, signal: AbortSignal) {
  const onWork = (workedMs: number) =>
    metrics.backgroundSeconds.inc({ task: task.name }, workedMs / 1000)
  await task.loop(createSharedPace(task, onWork), signal)
}

export function createSharedPace(
  { share, restMaxMs = longestRestMs }: Pick<Described, 'share' | 'restMaxMs'>,
  onWork: (workedMs: number) => void = () => undefined,
): SharedPace {
  const restAfter = createPace(share, restMaxMs)
  return {
    note: onWork,
    restAfter(workedMs) {
      onWork(workedMs)
      return restAfter(workedMs, performance.now())
    },
  }
}

/** False when the signal aborts before. */
async function hasPassed(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleep(ms, undefined, { signal }).catch(() => undefined)
  return !signal.aborted
}
