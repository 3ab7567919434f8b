import { Worker } from 'node:worker_threads'

import { ApiError } from './api-error.ts'
import { createFairLine } from './lines/fair-line.ts'
import type { ThreadMessage, ThreadRequest } from './serve-thread.ts'

type Options = {
  /** A file that calls `serveThread`. */
  entry: URL
  threadsMax: number
  /** How many threads one owner may use at a time; all of them when absent. */
  threadsPerOwnerMax?: number
  /** How many jobs of one owner may wait for a thread; more are refused. */
  waitingMax: number
  /** How many jobs of all owners may wait. */
  waitingTotalMax: number
  /** How long a thread may continue a job whose caller has given up; then the thread is terminated. */
  graceMs?: number
  memoryMaxMb?: number
}

/** For whom a job is run, and for how long. */
export type JobTerms = {
  /** Threads are shared out among owners, such as organizations. */
  owner: string
  /** How long the job may wait for a thread. */
  waitMs: number
  /** How long it may run. */
  runMs: number
  signal: AbortSignal
}

export type ThreadPool = {
  /** Rejects with `overloaded` if the job cannot be run on its terms. */
  run(job: string, input: unknown, terms: JobTerms): Promise<unknown>
  /** Starts all threads, which are otherwise started when they are first needed. */
  start(): void
  close(): Promise<void>
}

type Job = JobTerms & {
  name: string
  input: unknown
  done: PromiseWithResolvers<unknown>
  timer?: NodeJS.Timeout
  hasGivenWay: boolean
}
type Thread = {
  worker: Worker
  isReady: boolean
  /** Until the thread has answered, even if the caller has given up. */
  isBusy: boolean
  /** Whether it is being terminated. */
  isEnding: boolean
  job: Job | null
  /** For whom it works, or has worked last. */
  owner: string | null
  cancelled: Int32Array
  grace?: NodeJS.Timeout
}

/**
 * Runs slow computations outside the event loop, fairly: a free thread goes to the owner that has the fewest, in turn.
 * An owner may use several threads while no other needs one; then the latest of its jobs gives way and starts again
 * later. A thread that dies fails only its own job; the next job starts another thread.
 */
export function createThreadPool(options: Options): ThreadPool {
  const waiting = createWaitingJobs(options)
  const threads = createThreads(options, serveNext, lose)
  let isClosed = false

  function serveNext() {
    if (isClosed || waiting.size() === 0) return
    if (!threads.findIdleFor(null)) return threads.canStart() ? threads.start() : makeRoom()
    const job = waiting.takeFor(threads.countBusyOf)
    const idle = job && threads.findIdleFor(job.owner)
    if (!job || !idle) return
    limitTime(job, job.runMs, longRun)
    threads.begin(idle, job)
    serveNext()
  }

  /** Takes a thread from an owner with several, if a job waits whose owner has none. */
  function makeRoom() {
    const isNeeded = waiting.owners().some((owner) => threads.countBusyOf(owner) === 0)
    if (!isNeeded || threads.isOneEnding()) return
    const job = threads.releaseLatestOfSeveral()
    if (!job) return
    if (job.hasGivenWay) return job.done.reject(overloaded())
    job.hasGivenWay = true
    limitTime(job, job.waitMs)
    waiting.putBack(job.owner, job)
  }

  function abandon(job: Job, reason: unknown) {
    job.done.reject(reason)
    waiting.remove(job.owner, job)
    const thread = threads.findByJob(job)
    if (thread) threads.release(thread)
  }

  function limitTime(job: Job, ms: number, cause?: Error) {
    clearTimeout(job.timer)
    job.timer = setTimeout(() => abandon(job, tookTooLong(cause)), ms)
  }

  function lose({ isReady, job }: Thread, cause: unknown) {
    // Threads that cannot even start must not be started for ever: each takes a waiting job with it.
    const lost = isReady ? job : waiting.takeFor(threads.countBusyOf)
    lost?.done.reject(new Error('The thread has died.', { cause }))
    serveNext()
  }

  return {
    async run(name, input, terms) {
      terms.signal.throwIfAborted()
      if (isClosed || waiting.fullFor(terms.owner)) throw overloaded()
      const job = createJob(name, input, terms)
      limitTime(job, job.waitMs)
      waiting.add(job.owner, job)
      serveNext()
      return settle(job, abandon)
    },
    start() {
      while (!isClosed && threads.canStart()) threads.start()
    },
    async close() {
      isClosed = true
      for (const job of waiting.items()) abandon(job, overloaded())
      await threads.terminate()
    },
  }
}

function createWaitingJobs({
  waitingMax,
  waitingTotalMax,
  threadsPerOwnerMax = Infinity,
}: Options) {
  const line = createFairLine<Job>({ waitingMax: waitingTotalMax, waitingOfOneMax: waitingMax })
  return {
    ...line,
    /** The next job: of the owners with the fewest threads, that of the one that was served least recently. */
    takeFor(countThreadsOf: (owner: string) => number): Job | undefined {
      const [next] = line
        .owners()
        .map((owner) => ({ owner, threads: countThreadsOf(owner) }))
        .filter(({ threads }) => threads < threadsPerOwnerMax)
        .toSorted((one, other) => one.threads - other.threads)
      return next && line.takeNext(next.owner)
    },
  }
}

const createJob = (name: string, input: unknown, terms: JobTerms): Job => ({
  ...terms,
  name,
  input,
  done: Promise.withResolvers<unknown>(),
  hasGivenWay: false,
})

/** The threads, in the order in which they began their jobs. */
function createThreads(
  options: Options,
  onIdle: () => void,
  onDeath: (thread: Thread, cause: unknown) => void,
) {
  const { threadsMax, graceMs = 1000 } = options
  let threads: Thread[] = []

  /** Called twice for a thread that fails ('error', then 'exit'): the second call has no effect. */
  function lose(thread: Thread, cause: unknown) {
    if (!threads.includes(thread)) return
    threads = threads.filter((other) => other !== thread)
    clearTimeout(thread.grace)
    onDeath(thread, cause)
  }
  /** Lets a thread stop its job, whose result is not needed. */
  function release(thread: Thread) {
    thread.job = null
    Atomics.store(thread.cancelled, 0, 1)
    thread.grace = setTimeout(() => {
      // Its result may already be on the way: the thread must not get another job, which would die with it.
      thread.isEnding = true
      void thread.worker.terminate()
    }, graceMs).unref()
  }
  const countOf = (owner: string) => threads.filter(({ job }) => job?.owner === owner).length
  /** Also those whose job is not needed any more and has not ended: hanging up gives an owner no further threads. */
  const countBusyOf = (owner: string) =>
    threads.filter((thread) => thread.isBusy && thread.owner === owner).length

  return {
    countBusyOf,
    /** Preferably the thread that has worked for this owner last: it still has what it has prepared for it. */
    findIdleFor(owner: string | null) {
      const idle = threads.filter(
        ({ isReady, isBusy, isEnding }) => isReady && !isBusy && !isEnding,
      )
      return idle.find((thread) => thread.owner === owner) ?? idle[0]
    },
    findByJob: (job: Job) => threads.find((thread) => thread.job === job),
    /** Whether a thread is about to be free because its job is not needed any more. */
    isOneEnding: () => threads.some(({ isBusy, job }) => isBusy && !job),
    canStart: () => threads.length < threadsMax,
    start: () => void threads.push(openThread(options, onIdle, lose)),
    begin(thread: Thread, job: Job) {
      const { name, input } = job
      const cancelled = newFlag()
      threads = [...threads.filter((other) => other !== thread), thread]
      thread.job = job
      thread.owner = job.owner
      thread.isBusy = true
      thread.cancelled = cancelled
      thread.worker.postMessage({ job: name, input, cancelled } satisfies ThreadRequest)
    },
    release,
    /** Stops the latest job of an owner that has several threads, and returns it. */
    releaseLatestOfSeveral() {
      const thread = threads.findLast(({ job }) => job && countOf(job.owner) > 1)
      const job = thread?.job
      if (thread) release(thread)
      return job
    },
    terminate: () => Promise.all(threads.map(({ worker }) => worker.terminate())),
  }
}

function openThread(
  { entry, memoryMaxMb = 512 }: Options,
  onIdle: () => void,
  onDeath: (thread: Thread, cause: unknown) => void,
): Thread {
  const worker = new Worker(entry, { resourceLimits: { maxOldGenerationSizeMb: memoryMaxMb } })
  const idle = { isReady: false, isBusy: false, isEnding: false, job: null, owner: null }
  const thread: Thread = { worker, ...idle, cancelled: newFlag() }
  // An idle thread must not keep the process running.
  worker.unref()
  worker.on('message', (message: ThreadMessage) => {
    const done = thread.job?.done
    clearTimeout(thread.grace)
    thread.isReady = true
    thread.isBusy = false
    thread.job = null
    if ('error' in message) done?.reject(new Error(message.error))
    else if ('output' in message) done?.resolve(message.output)
    onIdle()
  })
  worker.on('error', (cause) => onDeath(thread, cause))
  worker.on('exit', (code) => onDeath(thread, new Error(`The thread ended with code ${code}.`)))
  return thread
}

const newFlag = () => new Int32Array(new SharedArrayBuffer(4))

/** Waits until a job is done, its time is over, or its signal aborts. */
async function settle(job: Job, abandon: (job: Job, reason: unknown) => void): Promise<unknown> {
  const { signal } = job
  const onAbort = () => abandon(job, signal.reason)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await job.done.promise
  } finally {
    clearTimeout(job.timer)
    signal.removeEventListener('abort', onAbort)
  }
}

const overloaded = () =>
  new ApiError('overloaded', 'Too many computations are waiting; retry later.')
const tookTooLong = (cause?: Error) =>
  new ApiError('overloaded', 'The computation took too long; retry later.', { cause })
/** Tells a job that ran too long from one that waited too long. */
const longRun = new Error('The job ran longer than its terms allow.')

/** Whether a job was ended because it ran, and not only waited, longer than its terms allow. */
export const ranTooLong = (thrown: unknown): boolean =>
  thrown instanceof ApiError && thrown.cause === longRun
