import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { defaultTable, readLimitsFile } from './limits-file.ts'

type Options = {
  /** Without one the built-in table holds. */
  file: string | undefined
  log: Log
  metrics: Metrics
  everyMs?: number
}

const fileMaxLength = 64 * 1024

/**
 * Holds the table of limits that is in force. The file is read every two seconds; while it cannot be used, the last good
 * table stays in force. At the start it must be good.
 */
export function followLimitsFile({ file, log, metrics, everyMs = 2000 }: Options) {
  let current = defaultTable
  let currentText = ''
  let lastProblem = ''
  if (file === undefined) return { current: () => current, stop: () => undefined }

  function take(text: string) {
    if (text.length > fileMaxLength) throw new Error('  the file: is larger than 64 KiB')
    current = readLimitsFile(text)
    currentText = text
  }

  try {
    take(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`Bad limits in LIMITS_FILE (${file}):\n${explain(error)}`)
  }

  async function look(path: string) {
    try {
      const text = await readFile(path, 'utf8')
      if (lastProblem === '' && text === currentText) return
      take(text)
      log.event('limits_file_changed')
      metrics.limitsFileIsStale.set(0)
      lastProblem = ''
    } catch (error) {
      // The same problem is found every two seconds and logged once.
      const { message } = error as Error
      if (message === lastProblem) return
      lastProblem = message
      metrics.limitsFileIsStale.set(1)
      log.problem('limits_file_unusable', error)
    }
  }

  const timer = setInterval(() => void look(file), everyMs).unref()
  return { current: () => current, stop: () => clearInterval(timer) }
}

function explain(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException
  if (code === undefined) return message
  return `  the file: cannot be read (${code}); correct LIMITS_FILE, write the file as docs/limits.md shows, or unset LIMITS_FILE to use the built-in limits`
}
