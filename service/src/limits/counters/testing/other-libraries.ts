import { readFileSync } from 'node:fs'

import { libraryName, type RedisCommands } from '#limits/counters/function-library.ts'
import type { RedisArgument } from '#platform/redis.ts'

const firstName = 'gatehouse_limits_1'
const firstText = [
  `#!lua name=${firstName}`,
  readFileSync(new URL('limiter-1.lua', import.meta.url), 'utf8'),
  ...['admit', 'settle', 'renew', 'absorb'].map(
    (name) => `redis.register_function('${firstName}_${name}', ${name})`,
  ),
].join('\n')

/** A server as a process of the first version uses it: its functions, and no index. */
export function asFirstVersion(redis: RedisCommands): RedisCommands {
  const translate = ([command, name, , counters, leases, , ...args]: RedisArgument[]) => {
    if (name === `${libraryName}_release`) return ['ZREM', leases!, ...args]
    const own = String(name).replace(libraryName, firstName)
    return [command!, own, '2', counters!, leases!, ...args]
  }
  return {
    deadlineMs: redis.deadlineMs,
    send: (key, args) => redis.send(key, args[0] === 'FCALL' ? translate([...args]) : args),
    sendToPrimaries: () => redis.sendToPrimaries(['FUNCTION', 'LOAD', 'REPLACE', firstText]),
  }
}

/** A server whose library keeps every slot in the index, and counts even a few of them there. */
export function indexingAlways(redis: RedisCommands): RedisCommands {
  const ownName = 'gatehouse_limits_indexing_always'
  const change = (arg: RedisArgument) =>
    typeof arg === 'string'
      ? arg
          .replaceAll(libraryName, ownName)
          .replaceAll(/^local (SCANNED_MAX|INDEXED_FROM) = \d+/gm, 'local $1 = 0')
      : arg
  return {
    deadlineMs: redis.deadlineMs,
    send: (key, args) => redis.send(key, args.map(change)),
    sendToPrimaries: (args) => redis.sendToPrimaries(args.map(change)),
  }
}
