import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { followFile } from '#platform/operator-file/follow-file.ts'

import { noProviders, type ReadSecret, readSignIn, type SignInSettings } from './read-sign-in.ts'

type Options = {
  /** The path of the file. Without a file there is no sign-in with a provider. */
  file: string | undefined
  readSecret: ReadSecret
  log: Log
  metrics: Metrics
  everyMs?: number
}

/**
 * Follows the operator's file. The file and the files of its secrets are read every two seconds. While they cannot be used,
 * the last good settings stay in force. At the start they must be good.
 */
export function followSignInFile({ file, readSecret, log, metrics, everyMs }: Options) {
  let current: SignInSettings = noProviders
  let known = ''
  if (file === undefined) return { current: () => current, stop: () => undefined }

  const { stop } = followFile({
    path: file,
    title: 'sign-in settings',
    setting: 'SIGN_IN_FILE',
    remedy:
      'correct SIGN_IN_FILE, write the file as docs/sign-in.md shows, or unset SIGN_IN_FILE to have no sign-in with a provider',
    maxKib: 256,
    everyMs,
    take(text) {
      const settings = readSignIn(text, readSecret)
      const read = JSON.stringify(settings)
      // A secret may have changed although the file has not.
      if (read === known) return false
      known = read
      current = settings
      return true
    },
    onChanged: () => log.event('sign_in_file_changed'),
    onUnusable: (error) => log.problem('sign_in_file_unusable', error),
    isStale: metrics.signInFileIsStale,
  })
  return { current: () => current, stop }
}
