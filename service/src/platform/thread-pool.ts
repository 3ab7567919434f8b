import { Worker } from 'node:worker_threads'

import { ApiError } from './api-error.ts'
import type { ThreadAnswer, ThreadRequest } from './serve-thread.ts'

type Options = {
  /** A file that calls `serveThread`. */
  entry: URL
  threadsMax: number
  /** How many jobs may wait for a thread; more are refused. */
  waitingMax: number
  /** How long a job may take, waiting included. */
  deadlineMs: number
  /** How long a thread may continue a job that was abandoned; then the thread is terminated. */
  graceMs?: number
  memoryMaxMb?: number
}

export type ThreadPool = {
  run(job: string, input: unknown, signal: AbortSignal): Promise<unknown>
  close(): Promise<void>
}

type Job = { request: ThreadRequest; done: PromiseWithResolvers<unknown> }
type Thread = { worker: Worker; job: Job | null; grace?: NodeJS.Timeout }

/**
 * Runs slow computations outside the event loop. Threads are started when they are first needed and stay. A
 * thread that dies fails only its own job; the next job starts another thread.
 */
export function createThreadPool(options: Options): ThreadPool {
  const { threadsMax, waitingMax, deadlineMs, graceMs = 1000 } = options
  let threads: Thread[] = []
  let waiting: Job[] = []
  let isClosed = false

  function start(): Thread {
    const thread = startThread(options, serveNext, lose)
    threads.push(thread)
    return thread
  }

  /** Called twice for a thread that fails ('error', then 'exit'): the second call has no effect. */
  function lose(thread: Thread, cause: unknown) {
    threads = threads.filter((other) => other !== thread)
    endJob(thread)?.done.reject(new Error('The thread has died.', { cause }))
    serveNext()
  }

  function serveNext() {
    if (waiting.length === 0 || isClosed) return
    const idle = threads.find(({ job }) => job === null)
    const thread = idle ?? (threads.length < threadsMax ? start() : undefined)
    const job = thread && waiting.shift()
    if (!job) return
    thread.job = job
    thread.worker.postMessage(job.request)
  }

  function abandon(job: Job, reason: unknown) {
    job.done.reject(reason)
    waiting = waiting.filter((other) => other !== job)
    Atomics.store(job.request.cancelled, 0, 1)
    const thread = threads.find((other) => other.job === job)
    if (thread) thread.grace ??= setTimeout(() => void thread.worker.terminate(), graceMs).unref()
  }

  return {
    async run(name, input, signal) {
      signal.throwIfAborted()
      if (isClosed || waiting.length >= waitingMax) throw overloaded()
      const job = createJob(name, input)
      waiting.push(job)
      serveNext()
      return settle(job, { signal, deadlineMs, abandon })
    },
    async close() {
      isClosed = true
      for (const job of waiting) abandon(job, overloaded())
      await Promise.all(threads.map(({ worker }) => worker.terminate()))
    },
  }
}

function startThread(
  { entry, memoryMaxMb = 512 }: Options,
  onIdle: () => void,
  onDeath: (thread: Thread, cause: unknown) => void,
): Thread {
  const worker = new Worker(entry, { resourceLimits: { maxOldGenerationSizeMb: memoryMaxMb } })
  const thread: Thread = { worker, job: null }
  // An idle thread must not keep the process running.
  worker.unref()
  worker.on('message', (answer: ThreadAnswer) => {
    const done = endJob(thread)?.done
    if ('error' in answer) done?.reject(new Error(answer.error))
    else done?.resolve(answer.output)
    onIdle()
  })
  worker.on('error', (cause) => onDeath(thread, cause))
  worker.on('exit', (code) => onDeath(thread, new Error(`The thread ended with code ${code}.`)))
  return thread
}

function endJob(thread: Thread): Job | null {
  const { job } = thread
  clearTimeout(thread.grace)
  delete thread.grace
  thread.job = null
  return job
}

const createJob = (job: string, input: unknown): Job => ({
  request: { job, input, cancelled: new Int32Array(new SharedArrayBuffer(4)) },
  done: Promise.withResolvers<unknown>(),
})

type Settling = {
  signal: AbortSignal
  deadlineMs: number
  abandon: (job: Job, reason: unknown) => void
}

/** Waits until a job is done, its deadline has passed, or its signal aborts. */
async function settle(job: Job, { signal, deadlineMs, abandon }: Settling): Promise<unknown> {
  const onAbort = () => abandon(job, signal.reason)
  const deadline = setTimeout(() => abandon(job, tookTooLong()), deadlineMs)
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    return await job.done.promise
  } finally {
    clearTimeout(deadline)
    signal.removeEventListener('abort', onAbort)
  }
}

const overloaded = () =>
  new ApiError('overloaded', 'Too many computations are waiting; retry later.')
const tookTooLong = () => new ApiError('overloaded', 'The computation took too long; retry later.')
