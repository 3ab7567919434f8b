import { readFileSync } from 'node:fs'

import type { KeyReference } from './catalogue-file.ts'

/** Reads the key of an upstream; throws if there is none. The message names the place and never contains the key. */
export function readUpstreamKey(
  reference: KeyReference,
  environment: Readonly<Record<string, string | undefined>>,
): string {
  const isFile = 'file' in reference
  const place = isFile ? `the file ${reference.file}` : `the environment variable ${reference.env}`
  const text = isFile ? readKeyFile(reference.file) : environment[reference.env]
  if (text === undefined) throw new Error(`${place} is not set`)
  const key = text.trim()
  if (key === '') throw new Error(`${place} is empty`)
  // Otherwise the key would fail as a header in every call.
  if (!/^[\x21-\x7e]{1,8192}$/.test(key)) {
    throw new Error(
      `${place} has a key with spaces, control characters or more than 8192 characters`,
    )
  }
  return key
}

function readKeyFile(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const { code = 'unknown error' } = error as NodeJS.ErrnoException
    throw new Error(`the file ${path} cannot be read (${code})`)
  }
}
