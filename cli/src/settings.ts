import type { CredentialKind } from '@gatehouse/contract/endpoint'

import { UsageError } from './usage-error.ts'

export type Settings = { baseUrl: string; credential: string }
export type Environment = Record<string, string | undefined>

/** The address of the service. A query or a password in it is refused: paths are appended to it. */
export function baseUrlFrom(environment: Environment, url: string | undefined): string {
  const given = url ?? environment['GATEHOUSE_URL']
  if (!given) throw new UsageError(missingUrl)
  const isPlain = /^https?:\/\/[^?#@]+$/.test(given) && URL.canParse(given)
  if (!isPlain) throw new UsageError(`'${given}' is not the http or https address of a service.`)
  return given
}

const missingUrl = `GATEHOUSE_URL is not set. Set it to the address of the service:
  export GATEHOUSE_URL=https://gatehouse.example.com
or pass the address with --url.`

/** The variable that holds the key for an endpoint: administrators and projects have different keys. */
export const keyVariableFor = (credentials: readonly CredentialKind[]) =>
  credentials.includes('admin_key') ? 'GATEHOUSE_ADMIN_KEY' : 'GATEHOUSE_API_KEY'

/** A key comes from the environment or from a file, never from a flag: other users can read those. */
export function keyFrom(environment: Environment, variable: string, fileText: string | undefined) {
  const key = (fileText ?? environment[variable] ?? '').trim()
  if (!key) throw new UsageError(fileText === undefined ? missingKey(variable) : emptyKeyFile)
  // The message does not repeat the key: error messages are pasted into tickets.
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new UsageError('The key contains characters that are not allowed in keys.')
  return key
}

const emptyKeyFile = 'The file named by --key-file is empty.'

const missingKey = (
  variable: string,
) => `${variable} is not set. Set it without leaving the key in the shell's history:
  read -rs ${variable} && export ${variable}
or pass the name of a file that holds the key with --key-file.`
