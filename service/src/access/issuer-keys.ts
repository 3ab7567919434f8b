import { createHash } from 'node:crypto'

import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose'

import type { Clock } from '#platform/clock.ts'
import type { Egress } from '#platform/egress.ts'
import type { Log } from '#platform/log.ts'
import type { TrustedFiles } from '#platform/trusted-file.ts'

type Options = {
  egress: Egress
  steadyNow: Clock
  log: Log
  /** Signed copies: write access to the folder alone must not be enough to make tokens valid. */
  files: TrustedFiles
}

const deadlineMs = 3000
const pauseMs = 30_000
const copyMaxAgeMs = 24 * 60 * 60 * 1000

/**
 * The public keys of an issuer: cached for ten minutes, and fetched at most every 30 seconds however many
 * unknown key ids arrive. While the issuer is unreachable, the last good copy on disk is used for a day.
 */
export function createIssuerKeys(jwksUrl: string, options: Options): JWTVerifyGetKey {
  const load = createKeyLoader(jwksUrl, options)
  return createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: deadlineMs,
    cooldownDuration: pauseMs,
    cacheMaxAge: 600_000,
    [customFetch]: async () =>
      new Response(await load(), { headers: { 'content-type': 'application/json' } }),
  })
}

/**
 * Fetches the key list, and pauses after a failure: jose counts its cooldown from the last success, so
 * without this pause every token would cause a request to a failing issuer.
 */
function createKeyLoader(jwksUrl: string, options: Options) {
  let failure: { atMs: number; cause: unknown } | undefined
  return async (): Promise<string> => {
    if (failure && options.steadyNow().getTime() - failure.atMs < pauseMs) {
      return readCopy(jwksUrl, options, failure.cause)
    }
    try {
      const text = await fetchKeys(jwksUrl, options)
      failure = undefined
      return text
    } catch (cause) {
      options.log.problem('issuer_keys_unavailable', cause)
      failure = { atMs: options.steadyNow().getTime(), cause }
      return readCopy(jwksUrl, options, cause)
    }
  }
}

async function fetchKeys(jwksUrl: string, options: Options): Promise<string> {
  const { status, body } = await options.egress.request(jwksUrl, {
    method: 'GET',
    headers: { accept: 'application/json' },
    deadlineMs,
    answerLimitBytes: 256 * 1024,
  })
  if (status !== 200) throw new Error(`The issuer's key list answered ${status}.`)
  const text = body.toString()
  // Throws unless the text is a list of keys: anything else must not replace the last good copy.
  createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
  await options.files
    .keep(copyNameOf(jwksUrl), text)
    .catch((error: unknown) => options.log.problem('issuer_keys_copy_not_written', error))
  return text
}

async function readCopy(jwksUrl: string, { files }: Options, cause: unknown): Promise<string> {
  const copy = await files.read(copyNameOf(jwksUrl), copyMaxAgeMs)
  if (!copy) throw cause
  return copy.text
}

const copyNameOf = (jwksUrl: string) =>
  `issuer-keys-${createHash('sha256').update(jwksUrl).digest('hex')}`
