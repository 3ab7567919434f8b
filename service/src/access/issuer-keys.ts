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
  now: Clock
  log: Log
  /** Whoever can write the folder must not be able to make tokens valid. */
  files: TrustedFiles
}

const deadlineMs = 3000
const pauseMs = 30_000
const copyMaxAgeMs = 24 * 60 * 60 * 1000

/**
 * The public keys of an issuer: kept ten minutes, asked for again at most every 30 seconds however
 * many unknown key ids arrive. While the issuer is away, the last good copy on disk serves for a day.
 */
export function keysOfIssuer(jwksUrl: string, options: Options): JWTVerifyGetKey {
  const load = pausingAfterFailure(jwksUrl, options)
  return createRemoteJWKSet(new URL(jwksUrl), {
    timeoutDuration: deadlineMs,
    cooldownDuration: pauseMs,
    cacheMaxAge: 600_000,
    [customFetch]: async () =>
      new Response(await load(), { headers: { 'content-type': 'application/json' } }),
  })
}

/** jose counts its pause from the last success, so without this every token would ask a failing issuer. */
function pausingAfterFailure(jwksUrl: string, options: Options) {
  let failure: { atMs: number; cause: unknown } | undefined
  return async (): Promise<string> => {
    if (failure && options.now().getTime() - failure.atMs < pauseMs) {
      return readCopy(jwksUrl, options, failure.cause)
    }
    try {
      const text = await fetchKeys(jwksUrl, options)
      failure = undefined
      return text
    } catch (cause) {
      options.log.problem("fetching an issuer's keys", cause)
      failure = { atMs: options.now().getTime(), cause }
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
  // Throws unless it is a list of keys: anything else must not replace the last good copy.
  createLocalJWKSet(JSON.parse(text) as JSONWebKeySet)
  await options.files
    .keep(copyNameOf(jwksUrl), text)
    .catch((error: unknown) => options.log.problem("keeping a copy of an issuer's keys", error))
  return text
}

async function readCopy(jwksUrl: string, { files }: Options, cause: unknown): Promise<string> {
  const copy = await files.read(copyNameOf(jwksUrl), copyMaxAgeMs)
  if (!copy) throw cause
  return copy.text
}

const copyNameOf = (jwksUrl: string) =>
  `issuer-keys-${createHash('sha256').update(jwksUrl).digest('hex')}`
