import type { Log } from './log.ts'

export type Stoppable = { name: string; stop: () => Promise<void> }

/**
 * Runs the steps of an orderly stop once, in order: on SIGTERM or SIGINT, and when something failed that
 * nobody expected, since open requests deserve their answers even then. A second signal ends the process
 * at once. One step that fails does not keep the others from running.
 */
export function stopOnSignals(steps: readonly Stoppable[], log: Log) {
  let isStopping = false
  let hasSignal = false
  let exitCode = 0
  const stop = async () => {
    if (isStopping) return
    isStopping = true
    log.event('stopping')
    for (const { name, stop } of steps) {
      await stop().catch((error: unknown) => log.problem(`stopping ${name}`, error))
    }
    log.event('stopped')
    process.exit(exitCode)
  }
  const onSignal = () => {
    if (hasSignal) {
      log.event('stopped_at_once')
      process.exit(1)
    }
    hasSignal = true
    void stop()
  }
  const onFailure = (error: unknown) => {
    log.problem('a failure that nobody expected', error)
    exitCode = 1
    void stop()
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  // Whoever started us through a channel is gone: nobody is left to send a signal.
  process.on('disconnect', onSignal)
  process.on('uncaughtException', onFailure)
  process.on('unhandledRejection', onFailure)
}
