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

/** For work that is not done by the worker, and so is not paced. */
export const withoutRest: Rest = async () => undefined

type Described = {
  /** In `/metrics`. */
  name: string
  /** How long the task waits after a pass. */
  everyMs: number
  /** Of one core, at most. Each worker has these shares. */
  share: number
  /** How long one rest takes at most, whatever the share asks for; `longestRestMs` unless given. */
  restMaxMs?: number
  /** Of one step, at most. Null: one statement that only reads, over everything. */
  rowsMax: number | null
  /** The code of the log line when a pass fails. */
  failureCode: string
}

/** Work that is repeated: one pass at a time, in steps of at most `rowsMax` rows. */
type Repeated = Described & {
  /** Before the first pass; 0 unless given. */
  firstMs?: number
  /** `everyMs` unless given. */
  afterFailureMs?: number
  /** One pass. May return how long to wait until the next one instead of `everyMs`. */
  run(turn: TaskTurn): Promise<number | void>
}

/** Work with loops of its own, which do several things at once until the signal aborts. */
type Looping = Described & { loop(pace: SharedPace, signal: AbortSignal): Promise<void> }

/** Several pieces of work share the share of their task. */
export type SharedPace = {
  /** Adds work to the time of the task, without a rest. */
  note(workedMs: number): void
  /** Adds work that has just ended. Returns how long that piece of work has to rest, so that all together keep to the share. */
  restAfter(workedMs: number): number
}

export type Task = Repeated | Looping

/** Enough for steps of 3 s with a share of a tenth. Longer ones have waited for something rather than worked. */
const longestRestMs = 30_000

export type TaskDeps = { now: Clock; log: Log; metrics: Metrics }

/** Runs a task until `signal` aborts. A pass that fails is logged now and then, and the task goes on. */
export const runTask = (task: Task, deps: TaskDeps, signal: AbortSignal): Promise<void> =>
  'run' in task ? repeat(task, deps, signal) : loop(task, deps, signal)

/**
 * A step counts with all the time it takes: its statements run one after the other, so the database and this process
 * together cannot have worked longer.
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
    // Also if it is over: the rest is not work.
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
