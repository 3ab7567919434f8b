import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'

import type { Log } from '#platform/log.ts'
import type { Metrics } from '#platform/metrics.ts'

import {
  type Catalogue,
  emptyCatalogue,
  type KeyReference,
  keyReferencesOf,
  readCatalogue,
} from './catalogue.ts'

type Options = {
  /** Without one there are no models. */
  file: string | undefined
  environment: Readonly<Record<string, string | undefined>>
  log: Log
  metrics: Metrics
  onChange: (catalogue: Catalogue) => void
  everyMs?: number
}

const fileMaxLength = 8 * 1024 * 1024

/**
 * Holds the catalogue that is in force. The file and the files of its secrets are looked at every two
 * seconds; one that cannot be used leaves the last good one in force. At the start it must be good.
 */
export function followCatalogue(options: Options) {
  const { file, environment, log, metrics, onChange, everyMs = 2000 } = options
  let current = emptyCatalogue
  let seen = ''
  let complaint = ''
  if (file === undefined) return { current: () => current, stop: () => undefined }

  const readSecret = (reference: KeyReference) => secretOf(reference, environment)
  const take = (text: string) => {
    if (text.length > fileMaxLength) throw new Error('  it is larger than 8 MiB')
    current = readCatalogue(text, readSecret)
    onChange(current)
  }
  try {
    const text = readFileSync(file, 'utf8')
    take(text)
    seen = text + secretsIn(text, readSecret)
  } catch (error) {
    throw new Error(`Bad model catalogue in MODELS_FILE:\n${(error as Error).message}`)
  }

  async function look(path: string) {
    let now = ''
    try {
      const text = await readFile(path, 'utf8')
      now = text + secretsIn(text, readSecret)
      if (now === seen) return
      take(text)
      log.event('catalogue_changed', { models: current.models.length })
      metrics.catalogueIsStale.set(0)
      complaint = ''
    } catch (error) {
      // Looked at again and again: one that stays bad is told once.
      const { message } = error as Error
      if (message === complaint) return
      complaint = message
      metrics.catalogueIsStale.set(1)
      log.problem('the model catalogue cannot be used; the last good one stays', error)
    }
    seen = now
  }

  const timer = setInterval(() => void look(file), everyMs).unref()
  return { current: () => current, stop: () => clearInterval(timer) }
}

/** Changes when a secret does; never leaves this file. */
const secretsIn = (text: string, readSecret: (reference: KeyReference) => string) =>
  keyReferencesOf(text).map(readSecret).join('\n')

function secretOf(
  reference: KeyReference,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const isFile = 'file' in reference
  const name = isFile ? 'the file of a key' : `the variable ${reference.env}`
  const secret = isFile ? readSecretFile(reference.file) : environment[reference.env]?.trim()
  // What cannot stand in a header would fail at every call instead of here.
  if (!secret || !/^[\x21-\x7e]{1,8192}$/.test(secret)) {
    throw new Error(`  upstreams: ${name} holds no usable key`)
  }
  return secret
}

function readSecretFile(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return ''
  }
}
