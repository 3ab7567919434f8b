import { createHash, createHmac, type KeyObject, randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  type JSONWebKeySet,
  type JWTVerifyGetKey,
} from 'jose'
import { z } from 'zod'

import type { Clock } from '#platform/clock.ts'
import type { Egress } from '#platform/egress.ts'
import type { Log } from '#platform/log.ts'

type Options = {
  egress: Egress
  now: Clock
  log: Log
  stateDirectory: string | undefined
  /**
   * Prove that a copy is ours: whoever can write the folder must not be able to make tokens valid. The
   * first one proves, all of them are believed.
   */
  fileKeys: readonly [KeyObject, ...KeyObject[]]
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
  await keepCopy(jwksUrl, text, options).catch((error: unknown) =>
    options.log.problem("keeping a copy of an issuer's keys", error),
  )
  return text
}

function copyPath(jwksUrl: string, stateDirectory: string): string {
  const name = createHash('sha256').update(jwksUrl).digest('hex').slice(0, 32)
  return join(stateDirectory, `issuer-keys-${name}.json`)
}

async function keepCopy(jwksUrl: string, text: string, { stateDirectory, now, fileKeys }: Options) {
  if (!stateDirectory) return
  await mkdir(stateDirectory, { recursive: true })
  const path = copyPath(jwksUrl, stateDirectory)
  const copy = { keptAtMs: now().getTime(), text }
  const file = { ...copy, proof: proofOf(jwksUrl, copy, fileKeys[0]) }
  // Processes may share the folder: each writes a file of its own and moves it into place.
  const fresh = `${path}.${randomUUID()}`
  try {
    await writeFile(fresh, JSON.stringify(file), { mode: 0o600 })
    await rename(fresh, path)
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
}

type Copy = { keptAtMs: number; text: string }

const proofOf = (jwksUrl: string, { keptAtMs, text }: Copy, key: KeyObject) =>
  createHmac('sha256', key)
    .update(JSON.stringify([jwksUrl, keptAtMs, text]))
    .digest('base64')

const CopyFile = z.object({ keptAtMs: z.int(), text: z.string(), proof: z.string() })

async function readCopy(
  jwksUrl: string,
  { stateDirectory, now, fileKeys }: Options,
  cause: unknown,
): Promise<string> {
  if (!stateDirectory) throw cause
  const file = await readFile(copyPath(jwksUrl, stateDirectory), 'utf8').catch(() => '{}')
  const { data: copy } = CopyFile.safeParse(parse(file))
  const isOurs = copy && fileKeys.some((key) => copy.proof === proofOf(jwksUrl, copy, key))
  if (!isOurs || now().getTime() - copy.keptAtMs >= copyMaxAgeMs) throw cause
  return copy.text
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
