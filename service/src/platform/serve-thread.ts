import { parentPort } from 'node:worker_threads'

/** The messages between a pool and its threads; `cancelled` holds 1 once the job is not needed any more. */
export type ThreadRequest = { job: string; input: unknown; cancelled: Int32Array }
export type ThreadAnswer = { output: unknown } | { error: string }

/** One kind of work. It should check `isCancelled` every few milliseconds. */
export type ThreadJob = (input: never, isCancelled: () => boolean) => Promise<unknown>

/** Makes the file that calls this the entry of a thread, which runs one job at a time. */
export function serveThread(jobs: Record<string, ThreadJob>) {
  const port = parentPort
  if (!port) throw new Error('This file runs in a worker thread only.')
  port.on('message', (request: ThreadRequest) => {
    void answer(jobs, request).then((result) => port.postMessage(result))
  })
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
