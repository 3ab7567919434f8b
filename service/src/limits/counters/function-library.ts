import { createHash } from 'node:crypto'

import { readTextAsset } from '#platform/assets.ts'
import { within } from '#platform/deadline.ts'
import type { Redis, RedisArgument } from '#platform/redis.ts'

export type RedisCommands = Pick<Redis, 'send' | 'sendToPrimaries' | 'deadlineMs'>

const functions = [
  'admit',
  'settle',
  'renew',
  'release',
  'absorb',
  'renew_quotas',
  'forget_quotas',
] as const
export type LimiterFunction = (typeof functions)[number]

/**
 * Each process that starts replaces the text of its version, so texts of one version must serve all its processes. A text
 * that cannot takes the next number, and so does another byte layout; both versions then run side by side. The second
 * version counts slots in an index, the third counts quotas too, the fourth knows tokens that count in the minute only; all
 * share the counters and leases of the first.
 */
export const libraryName = 'gatehouse_limits_4'
const functionNames = Object.fromEntries(
  functions.map((name) => [name, `${libraryName}_${name}`]),
) as Record<LimiterFunction, string>

const body = readTextAsset('quotas.lua') + readTextAsset('limiter.lua')

const libraryText = [
  `#!lua name=${libraryName}`,
  body,
  ...functions.map((name) => `redis.register_function('${functionNames[name]}', ${name})`),
].join('\n')

/** The same code as a script, for servers without functions. Its first argument names the part to run. */
const scriptText = [
  body,
  `local parts = { ${functions.map((name) => `${name} = ${name}`).join(', ')} }`,
  'return parts[table.remove(ARGV, 1)](KEYS, ARGV)',
].join('\n')

const scriptHash = createHash('sha1').update(scriptText).digest('hex')

type Keys = readonly [string, ...string[]]

const messageOf = (error: unknown) => (error instanceof Error ? error.message : '')
const isMissing = (error: unknown) => /function not found/i.test(messageOf(error))
const isUnsupported = (error: unknown) => /unknown command/i.test(messageOf(error))

/**
 * Calls a part of the library in one round trip. The library is loaded at the start, and again when a server
 * does not have it (restarted, failed over). Servers that do not support functions run it as a script.
 */
export function createFunctionLibrary(redis: RedisCommands) {
  let isScripted = false
  let loading: Promise<void> | undefined

  async function load() {
    try {
      await redis.sendToPrimaries(['FUNCTION', 'LOAD', 'REPLACE', libraryText])
    } catch (error) {
      if (!isUnsupported(error)) throw error
      isScripted = true
    }
  }
  const loadOnce = () => (loading ??= load().finally(() => (loading = undefined)))

  function run(name: LimiterFunction, keys: Keys, args: RedisArgument[]) {
    if (isScripted) return runScript(name, keys, args)
    return redis.send(keys[0], [
      'FCALL',
      functionNames[name],
      String(keys.length),
      ...keys,
      ...args,
    ])
  }

  async function runScript(name: LimiterFunction, keys: Keys, args: RedisArgument[]) {
    const rest = [String(keys.length), ...keys, name, ...args]
    try {
      return await redis.send(keys[0], ['EVALSHA', scriptHash, ...rest])
    } catch (error) {
      if (!messageOf(error).startsWith('NOSCRIPT')) throw error
      return redis.send(keys[0], ['EVAL', scriptText, ...rest])
    }
  }

  return {
    load: loadOnce,
    async call(name: LimiterFunction, keys: Keys, args: RedisArgument[]) {
      try {
        return await run(name, keys, args)
      } catch (error) {
        if (!isMissing(error) && !isUnsupported(error)) throw error
        // This call waits only as long as for an answer; loading goes on for the calls after it.
        const late = () => new Error('the functions are still being loaded')
        await within(redis.deadlineMs, late, loadOnce)
        return run(name, keys, args)
      }
    },
  }
}
