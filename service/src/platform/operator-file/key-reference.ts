import { readFileSync } from 'node:fs'

import { z } from 'zod'

const variableRule = 'must be the name of an environment variable, such as OPENAI_API_KEY'

/** Never the secret itself: where it is kept. */
export const KeyReference = z.union(
  [
    z.strictObject({ env: z.string().regex(/^[A-Z][A-Z0-9_]{0,99}$/, { error: variableRule }) }),
    z.strictObject({ file: z.string().min(1).max(1000) }),
  ],
  { error: 'must be {"env": "VARIABLE"} or {"file": "/path"}, never the key itself' },
)
export type KeyReference = z.infer<typeof KeyReference>

/** The key that is meant. Throws where there is none; the message has the place and never the key. */
export function readReferencedKey(
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
