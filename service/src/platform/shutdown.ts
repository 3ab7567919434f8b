import { standardOutput, untilWritten } from './bounded-output.ts'
import type { Log } from './log.ts'

export type Stoppable = { name: string; stop: () => Promise<void> }

/** How long the reader of the log has for the last lines, and for the last one after a second signal. */
const lastLinesMaxMs = 1000
const lastLineMaxMs = 100

type Options = {
  /**
   * Whether another process of ours passes signals on. The system may send them to both of us, so a second one does not mean
   * that the operator is in a hurry: in that case the other process kills this one.
   */
  isSupervised?: boolean
  /** Whether to report a failure although everything was stopped. */
  hasFailed?: () => boolean
}

/**
 * Runs the steps of an orderly stop once, in order: on SIGTERM or SIGINT, and after an uncaught error, since
 * open requests should be answered even then. A second signal ends the process at once. A step that fails
 * does not keep the others from running.
 */
export function stopOnSignals(steps: readonly Stoppable[], log: Log, options: Options = {}) {
  const { isSupervised = false, hasFailed = () => false } = options
  let isStopping = false
  let hasSignal = false
  let exitCode = 0
  const stop = async () => {
    if (isStopping) return
    isStopping = true
    log.event('stopping')
    for (const { name, stop } of steps) {
      await stop().catch((error: unknown) => log.problem(`${name}_not_stopped`, error))
    }
    log.event('stopped')
    await untilWritten(standardOutput(), lastLinesMaxMs)
    await untilWritten(process.stdout, lastLinesMaxMs)
    process.exit(hasFailed() ? 1 : exitCode)
  }
  const onSignal = () => {
    if (hasSignal && !isSupervised) {
      log.event('stopped_at_once')
      void untilWritten(standardOutput(), lastLineMaxMs).then(() => process.exit(1))
      return
    }
    hasSignal = true
    void stop()
  }
  const onFailure = (error: unknown) => {
    log.problem('uncaught_error', error)
    exitCode = 1
    void stop()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  // The parent process that holds the IPC channel has exited, so no signal will come from it.
  process.on('disconnect', onSignal)
  process.on('uncaughtException', onFailure)
  process.on('unhandledRejection', onFailure)
}
