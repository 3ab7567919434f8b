import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { moderationError } from './moderation-file.ts'
import {
  type ModerationSettings,
  noModeration,
  readModeration,
  type ReadOptions,
} from './read-moderation.ts'

type Options = ReadOptions & {
  /** Without one there is no scorer and no judge. */
  file: string | undefined
  log: Log
  metrics: Metrics
  /** Gets the settings at the start, and again whenever they have changed. */
  onSettings: (settings: ModerationSettings) => void
  everyMs?: number
}

const fileMaxLength = 64 * 1024

/**
 * Follows the operator's file. It and the files of its keys are read every two seconds; while they cannot be used, the last
 * good settings stay in force. At the start they must be good.
 */
export function followModerationFile(options: Options) {
  const { file, log, metrics, onSettings, everyMs = 2000 } = options
  let current = ''
  let lastProblem = ''
  if (file === undefined) {
    onSettings(noModeration)
    return { stop: () => undefined }
  }

  /** Returns whether anything has changed, be it only a key. */
  function take(text: string): boolean {
    if (text.length > fileMaxLength) throw moderationError(['the file: is larger than 64 KiB'])
    const settings = readModeration(text, options)
    const known = JSON.stringify(settings)
    if (known === current) return false
    current = known
    onSettings(settings)
    return true
  }

  try {
    take(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`Bad moderation settings in MODERATION_FILE (${file}):\n${explain(error)}`)
  }

  async function look(path: string) {
    try {
      if (take(await readFile(path, 'utf8'))) log.event('moderation_file_changed')
      metrics.moderationFileIsStale.set(0)
      lastProblem = ''
    } catch (error) {
      // The same problem is found every two seconds and logged once.
      const message = explain(error)
      if (message === lastProblem) return
      lastProblem = message
      metrics.moderationFileIsStale.set(1)
      log.problem('moderation_file_unusable', error)
    }
  }

  const timer = setInterval(() => void look(file), everyMs).unref()
  return { stop: () => clearInterval(timer) }
}

function explain(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException
  if (code === undefined) return message
  // Not to unset the setting: calls to models would be refused then.
  return `  the file: cannot be read (${code}); correct MODERATION_FILE, or write the file as docs/moderation.md shows: the shortest is {"accept_local_only": true}, for trying it out`
}
