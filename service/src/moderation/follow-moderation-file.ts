import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { followFile } from '#platform/operator-file/follow-file.ts'

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

/**
 * Follows the operator's file. It and the files of its keys are read every two seconds; while they cannot be used, the last
 * good settings stay in force. At the start they must be good.
 */
export function followModerationFile(options: Options) {
  const { file, log, metrics, onSettings, everyMs } = options
  let current = ''
  if (file === undefined) {
    onSettings(noModeration)
    return { stop: () => undefined }
  }

  return followFile({
    path: file,
    title: 'moderation settings',
    setting: 'MODERATION_FILE',
    // Not to unset the setting: calls to models would be refused then.
    remedy:
      'correct MODERATION_FILE, or write the file as docs/moderation.md shows: the shortest is {"accept_local_only": true}, for trying it out',
    maxKib: 64,
    everyMs,
    take(text) {
      const settings = readModeration(text, options)
      const known = JSON.stringify(settings)
      // A key may have changed although the file has not.
      if (known === current) return false
      current = known
      onSettings(settings)
      return true
    },
    onChanged: () => log.event('moderation_file_changed'),
    onUnusable: (error) => log.problem('moderation_file_unusable', error),
    isStale: metrics.moderationFileIsStale,
  })
}
