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
  /** The path of the file. Without a file there is no scorer and no judge. */
  file: string | undefined
  log: Log
  metrics: Metrics
  /** Called with the settings at the start, and after every change. */
  onSettings: (settings: ModerationSettings) => void
  everyMs?: number
}

/**
 * Follows the operator's file. The file and the files of its keys are read every two seconds. While they cannot be used, the
 * last good settings stay in force. At the start they must be good.
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
    // We do not suggest removing the setting, because calls to models would then be refused.
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
