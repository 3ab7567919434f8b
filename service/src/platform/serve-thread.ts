import { parentPort } from 'node:worker_threads'

/** What a pool sends to a thread; `cancelled` holds 1 once the job is not needed any more. */
export type ThreadRequest = { job: string; input: unknown; cancelled: Int32Array }
type ThreadAnswer = { output: unknown } | { error: string }
/** What a thread sends: once that it is ready, then an answer to each request. */
export type ThreadMessage = { ready: true } | ThreadAnswer

/** One kind of work. It should check `isCancelled` every few milliseconds. */
export type ThreadJob = (input: never, isCancelled: () => boolean) => Promise<unknown>

/**
 * Makes the file that calls this the entry of a thread, which runs one job at a time. Call it when everything is loaded:
 * the time of a job is limited, and starts when the thread is ready.
 */
export function serveThread(jobs: Record<string, ThreadJob>) {
  const port = parentPort
  if (!port) throw new Error('This file runs in a worker thread only.')
  const send = (message: ThreadMessage) => port.postMessage(message)
  port.on('message', (request: ThreadRequest) => void answer(jobs, request).then(send))
  send({ ready: true })
}

async function answer(
  jobs: Record<string, ThreadJob>,
  { job, input, cancelled }: ThreadRequest,
): Promise<ThreadAnswer> {
  try {
    const work = jobs[job]
    if (!work) throw new Error(`There is no job ${job}.`)
    return { output: await work(input as never, () => Atomics.load(cancelled, 0) === 1) }
  } catch (thrown) {
    return { error: thrown instanceof Error ? thrown.message : 'The job failed.' }
  }
}
