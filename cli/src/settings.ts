import type { CredentialKind } from '@gatehouse/contract/endpoint'

import { UsageError } from './usage-error.ts'

export type Settings = { baseUrl: string; credential: string }
export type Environment = Record<string, string | undefined>

/** Where the service is. A query or a password in the address would end up in the wrong place. */
export function baseUrlFrom(environment: Environment, url: string | undefined): string {
  const given = url ?? environment['GATEHOUSE_URL']
  if (!given) throw new UsageError(missingUrl)
  const isPlain = /^https?:\/\/[^?#@]+$/.test(given) && URL.canParse(given)
  if (!isPlain) throw new UsageError(`'${given}' is not the http or https address of a service.`)
  return given
}

const missingUrl = `GATEHOUSE_URL is not set. Say where the service is:
  export GATEHOUSE_URL=https://gatehouse.example.com
or give the address once with --url.`

/** Which variable holds the key for an endpoint: administrators and projects have different keys. */
export const keyVariableFor = (credentials: readonly CredentialKind[]) =>
  credentials.includes('admin_key') ? 'GATEHOUSE_ADMIN_KEY' : 'GATEHOUSE_API_KEY'

/** A key comes from the environment or from a file, never from a flag: others can read those. */
export function keyFrom(environment: Environment, variable: string, fileText: string | undefined) {
  const key = (fileText ?? environment[variable] ?? '').trim()
  if (!key) throw new UsageError(fileText === undefined ? missingKey(variable) : emptyKeyFile)
  // Its value is not repeated: what goes wrong gets pasted into tickets.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new UsageError('The key has characters no key has.')
  return key
}

const emptyKeyFile = 'The file named by --key-file is empty.'

const missingKey = (
  variable: string,
) => `${variable} is not set. Give it without a trace in the shell's history:
  read -rs ${variable} && export ${variable}
or name a file that holds the key with --key-file.`
