import cluster, { type Worker } from 'node:cluster'

import {
  type ProcessPlace,
  type ProcessMessage,
  type Question,
  supervisedArgument,
  type SupervisorMessage,
} from './messages.ts'
import type { MetricList } from './sum-metrics.ts'

/** How a process has ended; `servedMs` is how long it had served. */
export type ProcessEnd = { how: string; isOrderly: boolean; isExplained: boolean; servedMs: number }

type Options<Settings> = {
  place: ProcessPlace<Settings>
  nowMs: () => number
  onUp(address: string): void
  onEnd(end: ProcessEnd): void
}

/** Longer than any turn of a busy process. One that takes longer counts as not answering. */
const answerMaxMs = 2000

/** Starts a process of the same program. Exactly one `onEnd` follows; `onUp` only if it comes to serve. */
export function startProcess<Settings>({ place, nowMs, onUp, onEnd }: Options<Settings>) {
  const waiting = new Map<number, (answer: unknown) => void>()
  let upAtMs: number | undefined
  let questions = 0
  let metrics: MetricList = []
  // The same command: the program may have been started by a word such as `serve`.
  cluster.setupPrimary({ args: [...process.argv.slice(2), supervisedArgument] })
  const worker = cluster.fork()
  const send = (message: SupervisorMessage<Settings>) =>
    // A process that ends meanwhile gets no message; its end is reported elsewhere.
    void worker.send(message, undefined, () => undefined)

  worker.on('message', (message: ProcessMessage) => {
    switch (message.kind) {
      case 'place_wanted':
        send({ kind: 'place', place })
        break
      case 'up':
        upAtMs = nowMs()
        onUp(message.address)
        break
      case 'answer':
        waiting.get(message.id)?.(message.answer)
    }
  })
  onceEnded(worker, (how) => {
    for (const resolve of waiting.values()) resolve(undefined)
    onEnd({ ...how, servedMs: upAtMs === undefined ? 0 : nowMs() - upAtMs })
  })

  async function ask(question: Question): Promise<unknown> {
    if (upAtMs === undefined) return undefined
    const id = ++questions
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const timer = setTimeout(resolve, answerMaxMs)
    waiting.set(id, resolve)
    send({ kind: 'question', id, question })
    const answer = await promise
    clearTimeout(timer)
    waiting.delete(id)
    return answer
  }

  return {
    pid: worker.process.pid,
    isUp: () => upAtMs !== undefined,
    kill: (signal: NodeJS.Signals) => void worker.process.kill(signal),
    /** Undefined if the process does not answer in time. */
    ask,
    /** The metrics that the process had last, if it does not answer in time. */
    async readMetrics(): Promise<MetricList> {
      metrics = ((await ask({ about: 'metrics' })) as MetricList | undefined) ?? metrics
      return metrics
    },
    lastMetrics: () => metrics,
  }
}
export type StartedProcess = ReturnType<typeof startProcess>

function onceEnded(worker: Worker, onEnd: (end: Omit<ProcessEnd, 'servedMs'>) => void) {
  worker.once('exit', (code: number | null, signal: NodeJS.Signals | null) => {
    const how = signal ? `by ${signal}` : `with exit code ${code}`
    // A process that cannot start exits with 1, and has said why on standard error.
    onEnd({ how, isOrderly: code === 0, isExplained: code === 1 })
  })
  // If the system could not start it, there is no exit. Other errors are followed by one.
  worker.on('error', (error: Error) => {
    if (worker.process.pid !== undefined) return
    onEnd({ how: `before it started: ${error.message}`, isOrderly: false, isExplained: false })
  })
}
