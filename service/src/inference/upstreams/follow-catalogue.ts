import type { UpstreamFormats } from '#formats/format.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'
import { followFile } from '#platform/operator-file/follow-file.ts'
import { type KeyReference, readReferencedKey } from '#platform/operator-file/key-reference.ts'

import { type Catalogue, emptyCatalogue } from './catalogue.ts'
import { readCatalogue } from './read-catalogue.ts'

type Options = {
  /** The path of the catalogue. Without a file there are no models. */
  file: string | undefined
  formats: UpstreamFormats
  environment: Readonly<Record<string, string | undefined>>
  log: Log
  metrics: Metrics
  onChange: (catalogue: Catalogue) => void
  everyMs?: number
}

/**
 * Holds the catalogue that is in force. The file and the files of its keys are read every two seconds; while
 * they cannot be used, the last good catalogue stays in force. At the start they must be good.
 */
export function followCatalogue(options: Options) {
  const { file, formats, environment, log, metrics, onChange, everyMs } = options
  let current = emptyCatalogue
  let currentText = ''
  if (file === undefined) return { current: () => current, stop: () => undefined }

  const readSecret = (reference: KeyReference) => readReferencedKey(reference, environment)
  const isCurrent = (text: string) =>
    text === currentText && current.upstreams.every((upstream) => hasSameKey(upstream, readSecret))

  const { stop } = followFile({
    path: file,
    title: 'model catalogue',
    setting: 'MODELS_FILE',
    remedy: 'correct MODELS_FILE, or write the file as docs/models.md shows',
    maxKib: 8192,
    everyMs,
    take(text, wasUnusable) {
      if (!wasUnusable && isCurrent(text)) return false
      current = readCatalogue(text, { formats, readSecret })
      currentText = text
      onChange(current)
      return true
    },
    onChanged: () => log.event('catalogue_changed', { models: current.models.length }),
    onUnusable: (error) => log.problem('catalogue_unusable', error),
    isStale: metrics.catalogueIsStale,
  })
  return { current: () => current, stop }
}

/** A key that can no longer be read counts as changed, so that reading the catalogue again reports it. */
function hasSameKey(
  { key, secret }: Catalogue['upstreams'][number],
  readSecret: (reference: KeyReference) => string,
): boolean {
  try {
    return key === null || readSecret(key) === secret
  } catch {
    return false
  }
}
