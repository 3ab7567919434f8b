import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

import type { UpstreamFormats } from '#formats/format.ts'
import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import { catalogueError, type KeyReference } from './catalogue-file.ts'
import { type Catalogue, emptyCatalogue } from './catalogue.ts'
import { readCatalogue } from './read-catalogue.ts'
import { readKey } from './read-key.ts'

type Options = {
  /** Without one there are no models. */
  file: string | undefined
  formats: UpstreamFormats
  environment: Readonly<Record<string, string | undefined>>
  log: Log
  metrics: Metrics
  onChange: (catalogue: Catalogue) => void
  everyMs?: number
}

const fileMaxLength = 8 * 1024 * 1024

/**
 * Holds the catalogue that is in force. The file and the files of its keys are read every two seconds; while
 * they cannot be used, the last good catalogue stays in force. At the start they must be good.
 */
export function followCatalogue(options: Options) {
  const { file, formats, environment, log, metrics, onChange, everyMs = 2000 } = options
  let current = emptyCatalogue
  let currentText = ''
  let lastProblem = ''
  if (file === undefined) return { current: () => current, stop: () => undefined }

  const readSecret = (reference: KeyReference) => readKey(reference, environment)
  const isCurrent = (text: string) =>
    text === currentText && current.upstreams.every((upstream) => hasSameKey(upstream, readSecret))

  function take(text: string) {
    if (text.length > fileMaxLength) throw catalogueError(['the file is larger than 8 MiB'])
    current = readCatalogue(text, { formats, readSecret })
    currentText = text
    onChange(current)
  }

  try {
    take(readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Error(`Bad model catalogue in MODELS_FILE (${file}):\n${explain(error)}`)
  }

  async function look(path: string) {
    try {
      const text = await readFile(path, 'utf8')
      if (lastProblem === '' && isCurrent(text)) return
      take(text)
      log.event('catalogue_changed', { models: current.models.length })
      metrics.catalogueIsStale.set(0)
      lastProblem = ''
    } catch (error) {
      // The same problem is found every two seconds and logged once.
      const message = explain(error)
      if (message === lastProblem) return
      lastProblem = message
      metrics.catalogueIsStale.set(1)
      log.problem('catalogue_unusable', error)
    }
  }

  const timer = setInterval(() => void look(file), everyMs).unref()
  return { current: () => current, stop: () => clearInterval(timer) }
}

/** A key that can no longer be read is not the same: reading the catalogue again reports it. */
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

function explain(error: unknown): string {
  const { message, code } = error as NodeJS.ErrnoException
  if (code === undefined) return message
  return `  the file: cannot be read (${code}); correct MODELS_FILE, or write the file as docs/models.md shows`
}
