import { createClient, createCluster, RESP_TYPES } from 'redis'

import { within } from './deadline.ts'
import { openWire } from './redis-wire/open-wire.ts'

export type RedisArgument = string | Buffer

export type Redis = {
  /** Sends one command; in a cluster `key` selects the node. Redis strings are returned as bytes. */
  send(key: string, args: readonly RedisArgument[]): Promise<unknown>
  /** Sends the same command to every primary. */
  sendToPrimaries(args: readonly RedisArgument[]): Promise<void>
  publish(channel: string, message: string): Promise<void>
  /** Calls back for every message, also after reconnections; messages sent during an outage are lost. */
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>
  close(): void
}

export type RedisOptions = {
  url: string
  isCluster: boolean
  onProblem: (error: Error) => void
  onReady: () => void
  /** How long a command may take. */
  deadlineMs?: number
}

const loadDeadlineMs = 1000
/** Commands without an answer block all later ones on their connection: after so many it is replaced. */
const missesMax = 5
// Longer than the event loop is blocked at the start, by the tables of the token counter: that would be taken for a
// connection that failed. No command waits for it: until the connection is up commands fail at once.
const connectTimeoutMs = 5000
const retryDelayMs = (retries: number) =>
  Math.min(50 * 2 ** Math.min(retries, 6), 1000) * (0.8 + Math.random() * 0.4)

class NoAnswer extends Error {}
const noAnswer = () => new NoAnswer('Redis did not answer in time')

/**
 * A Redis client that never waits for an outage to end: no offline queue, no resending, and every command
 * has a deadline. The deadline is implemented here, because the client's own timeout does not cover commands
 * that have been sent. Reconnection goes on in the background for ever.
 */
export function connectRedis(options: RedisOptions): Redis {
  const { deadlineMs = 40 } = options
  const open = options.isCluster ? openCluster : openSingle
  let commands = open(options)
  const subscriber = openSingle(options, { isPatient: true })
  const wire = options.isCluster ? undefined : openFunctionWire(options, deadlineMs)
  let misses = 0

  async function ask<T>(work: () => Promise<T>, ms = deadlineMs): Promise<T> {
    try {
      const answer = await within(ms, noAnswer, work)
      misses = 0
      return answer
    } catch (error) {
      misses = error instanceof NoAnswer ? misses + 1 : misses
      if (misses >= missesMax) {
        misses = 0
        commands.close()
        commands = open(options)
      }
      throw error
    }
  }

  return {
    send: (key, args) =>
      wire && args[0] === 'FCALL' ? wire.send(args) : ask(() => commands.send(key, args)),
    sendToPrimaries: (args) => ask(() => commands.sendToPrimaries(args), loadDeadlineMs),
    publish: async (channel, message) => {
      await ask(() => commands.send(channel, ['PUBLISH', channel, message]))
    },
    subscribe: subscriber.subscribe,
    close: () => {
      commands.close()
      wire?.close()
      subscriber.close()
    },
  }
}

/** Functions are what every call runs; our own answer with a number or a string. */
const openFunctionWire = ({ url, onProblem, onReady }: RedisOptions, deadlineMs: number) =>
  openWire({
    url,
    deadlineMs,
    createLateError: noAnswer,
    missesMax,
    retryDelayMs,
    connectTimeoutMs,
    onProblem,
    onReady,
  })

/** RESP2, in which every answer is a number, a string or a list. */
const protocol = { RESP: 2 } as const

const asBytes = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

const socket = { connectTimeout: connectTimeoutMs, reconnectStrategy: retryDelayMs }

/** A patient client queues commands until it is connected: for subscriptions. */
function openSingle({ url, onProblem, onReady }: RedisOptions, { isPatient = false } = {}) {
  const client = createClient({ ...protocol, url, disableOfflineQueue: !isPatient, socket })
  client.on('error', onProblem)
  client.on('ready', onReady)
  // Resolves with the first connection, however late; failed attempts emit 'error'.
  client.connect().catch(onProblem)
  return {
    send: (_: string, args: readonly RedisArgument[]) => client.sendCommand([...args], asBytes),
    sendToPrimaries: async (args: readonly RedisArgument[]) => {
      await client.sendCommand([...args], asBytes)
    },
    subscribe: (channel: string, onMessage: (message: string) => void) =>
      client.subscribe(channel, onMessage),
    close: () => client.destroy(),
  }
}

function openCluster({ url, onProblem, onReady }: RedisOptions) {
  const cluster = createCluster({
    rootNodes: [{ url }],
    ...protocol,
    defaults: { disableOfflineQueue: true, socket },
    maxCommandRedirections: 4,
  })
  cluster.on('error', onProblem)
  cluster.on('node-ready', onReady)
  cluster.connect().catch(onProblem)
  return {
    send: (key: string, args: readonly RedisArgument[]) =>
      cluster.sendCommand(key, false, [...args], asBytes),
    sendToPrimaries: async (args: readonly RedisArgument[]) => {
      if (cluster.masters.length === 0) throw new Error('The cluster is not connected yet')
      for (const node of cluster.masters) {
        const client = await cluster.nodeClient(node)
        await client.sendCommand([...args], asBytes)
      }
    },
    close: () => cluster.destroy(),
  }
}
