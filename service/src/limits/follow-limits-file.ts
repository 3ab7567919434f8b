import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { followFile } from '#platform/operator-file/follow-file.ts'

import { defaultTable, readLimitsFile } from './limits-file.ts'

type Options = {
  /** Without one the built-in table holds. */
  file: string | undefined
  log: Log
  metrics: Metrics
  everyMs?: number
}

/**
 * Holds the table of limits that is in force. The file is read every two seconds; while it cannot be used, the last good
 * table stays in force. At the start it must be good.
 */
export function followLimitsFile({ file, log, metrics, everyMs }: Options) {
  let current = defaultTable
  let currentText = ''
  if (file === undefined) return { current: () => current, stop: () => undefined }

  const { stop } = followFile({
    path: file,
    title: 'limits',
    setting: 'LIMITS_FILE',
    remedy:
      'correct LIMITS_FILE, write the file as docs/limits.md shows, or unset LIMITS_FILE to use the built-in limits',
    maxKib: 64,
    everyMs,
    take(text, wasUnusable) {
      if (text === currentText && !wasUnusable) return false
      current = readLimitsFile(text)
      currentText = text
      return true
    },
    onChanged: () => log.event('limits_file_changed'),
    onUnusable: (error) => log.problem('limits_file_unusable', error),
    isStale: metrics.limitsFileIsStale,
  })
  return { current: () => current, stop }
}
