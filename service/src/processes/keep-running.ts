import type { Log } from '#platform/log.ts'

import type { ProcessPlace, Question } from './messages.ts'
import type { ProcessReadiness } from './overall-readiness.ts'
import { createRestartDelay } from './restart-delay.ts'
import { type ProcessEnd, type StartedProcess, startProcess } from './start-process.ts'
import type { MetricList, MetricSums } from './sum-metrics.ts'

type Options<Settings> = {
  place: ProcessPlace<Settings>
  log: Log
  sums: MetricSums
  nowMs: () => number
}

/** Keeps one process running: whenever it ends, it is started again, until `stop`. */
export function keepRunning<Settings>({ place, log, sums, nowMs }: Options<Settings>) {
  const { number } = place
  const delay = createRestartDelay()
  const stopped = Promise.withResolvers<{ hasFailed: boolean }>()
  let current: StartedProcess | undefined
  let lastEnd: ProcessEnd | undefined
  let restart: NodeJS.Timeout | undefined
  let isStopping = false

  /**
   * Resolves with the address once the process serves, or with how it ended if it never did. A trial that never served is not
   * started again.
   */
  function start(isTrial = false): Promise<{ address: string } | ProcessEnd> {
    return new Promise((resolve) => {
      const started = startProcess({
        place,
        nowMs,
        onUp(address) {
          sums.running.inc()
          log.event('process_up', { process: number, pid: started.pid ?? 0 })
          resolve({ address })
        },
        onEnd(end) {
          forget(started, end)
          if (isStopping) endStop(started, end)
          else if (started.isUp() || !isTrial) restartSoon(end)
          resolve(end)
        },
      })
      current = started
    })
  }

  function forget(ended: StartedProcess, end: ProcessEnd) {
    current = undefined
    lastEnd = end
    if (ended.isUp()) sums.running.dec()
    sums.keep(ended.lastMetrics())
  }

  /** A process that is not up yet is killed by the signal that makes a serving one drain, so that its end is no failure. */
  const endStop = (ended: StartedProcess, end: ProcessEnd) =>
    stopped.resolve({ hasFailed: ended.isUp() && !end.isOrderly })

  function restartSoon({ how, servedMs = 0 }: { how: string; servedMs?: number }) {
    const delayMs = delay.next(servedMs)
    log.problem('process_ended', restartNotice(number, how, delayMs))
    restart = setTimeout(() => {
      sums.restarts.inc()
      // The system may be short of memory or of processes for a moment.
      start().catch((error: Error) => restartSoon({ how: `before it started: ${error.message}` }))
    }, delayMs)
  }

  return {
    number,
    start,
    ask: async (question: Question) => current?.ask(question),
    readiness: () => readReadiness(number, current, lastEnd),
    readMetrics: async (): Promise<MetricList> => (await current?.readMetrics()) ?? [],
    /** Lets the process drain; resolves when it has ended. */
    stop(): Promise<{ hasFailed: boolean }> {
      isStopping = true
      clearTimeout(restart)
      if (current) current.kill('SIGTERM')
      else stopped.resolve({ hasFailed: false })
      return stopped.promise
    },
    kill: () => current?.kill('SIGKILL'),
  }
}
const restartNotice = (number: number, how: string, delayMs: number) =>
  new Error(`Process ${number} ended ${how}; it is started again in ${delayMs} ms.`)

export type KeptProcess = ReturnType<typeof keepRunning>

async function readReadiness(
  number: number,
  current: StartedProcess | undefined,
  lastEnd: ProcessEnd | undefined,
): Promise<ProcessReadiness> {
  if (!current?.isUp()) {
    const start = lastEnd ? `ended ${lastEnd.how} and is being started again` : 'is starting'
    return { number, isServing: false, reasons: [start] }
  }
  const reasons = (await current.ask({ about: 'readiness' })) as string[] | undefined
  if (!reasons) return { number, isServing: true, reasons: ['does not answer'] }
  return { number, isServing: !reasons.includes('draining'), reasons }
}
