import type { Log } from './log.ts'

export type Stoppable = { name: string; stop: () => Promise<void> }

/**
 * Runs the steps of an orderly stop once, in order, on SIGTERM or SIGINT; a second signal ends the
 * process at once. One step that fails does not keep the others from running.
 */
export function stopOnSignals(steps: readonly Stoppable[], log: Log) {
  let isStopping = false
  const stop = async () => {
    if (isStopping) {
      log.event('stopped_at_once')
      process.exit(1)
    }
    isStopping = true
    log.event('stopping')
    for (const { name, stop } of steps) {
      await stop().catch((error: unknown) => log.problem(`stopping ${name}`, error))
    }
    log.event('stopped')
    process.exit(0)
  }
  process.on('SIGTERM', () => void stop())
  process.on('SIGINT', () => void stop())
  // Whoever started us through a channel is gone: nobody is left to send a signal.
  process.on('disconnect', () => void stop())
}
