import { within } from './deadline.ts'
import type { GeneralClient, RedisArgument } from './redis/general-client.ts'
import { openWire } from './redis/open-wire.ts'

export type { RedisArgument }

export type Redis = {
  /** How long a command may take. */
  readonly deadlineMs: number
  /** Sends one command; in a cluster `key` selects the node. Redis strings are returned as bytes. */
  send(key: string, args: readonly RedisArgument[]): Promise<unknown>
  /** Sends the same command to every primary, whose answers must be numbers or strings. */
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
  deadlineMs?: number
}

/** A library takes the server longer than a command does. */
const loadDeadlineMs = 1000
/** How long the first command waits for a connection, once the client is loaded. */
const openDeadlineMs = 1000
/**
 * Commands without an answer block all later ones on their connection: after this time without any answer it is replaced. Many
 * commands are late together when a busy machine lets the server wait for the processor: that is a pause and no outage, however
 * many they are.
 */
const silentMaxMs = 500
/** The general client does not say whether a late answer came: that takes this many late commands, too. */
const lateMin = 5
// A start may block the event loop for a while; a shorter timeout would then give up a connection that is being made. Commands do
// not wait for it: until the connection is up, they fail at once.
const connectTimeoutMs = 5000
const retryDelayMs = (retries: number) =>
  Math.min(50 * 2 ** Math.min(retries, 6), 1000) * (0.8 + Math.random() * 0.4)

/** The server may have executed the command, and may answer the next in time. */
export class RedisLate extends Error {}
const noAnswer = () => new RedisLate('Redis did not answer in time')

/**
 * A Redis client that never waits for an outage to end: no offline queue, no resending, and every command
 * has a deadline. The deadline is implemented here, because the client's own timeout does not cover commands
 * that have been sent. Reconnection goes on in the background for ever.
 *
 * The connection for functions is opened at once, the others when they are first used: loading the general client would be
 * a fifth of the start of a process, and calls do without it.
 */
export function connectRedis(options: RedisOptions): Redis {
  const { deadlineMs = 40 } = options
  const wire = options.isCluster ? undefined : openFunctionWire(options, deadlineMs)
  const loadMs = Math.max(loadDeadlineMs, deadlineMs)
  const { ask, close: closeCommands } = createCommands(options)
  let subscriber: Promise<GeneralClient> | undefined

  return {
    deadlineMs,
    send: (key, args) =>
      wire && args[0] === 'FCALL'
        ? wire.send(args)
        : ask(deadlineMs, (client) => client.send(key, args)),
    sendToPrimaries: async (args) => {
      if (wire) await wire.sendSlow(args, loadMs)
      else await ask(loadMs, (client) => client.sendToPrimaries(args))
    },
    publish: async (channel, message) => {
      await ask(deadlineMs, (client) => client.send(channel, ['PUBLISH', channel, message]))
    },
    subscribe: async (channel, onMessage) => {
      subscriber ??= openSubscriber(options)
      await (await subscriber).subscribe(channel, onMessage)
    },
    close: () => {
      wire?.close()
      closeCommands()
      closeWhenOpen(subscriber)
    },
  }
}

/** The general client for commands: opened at the first of them, and replaced when it does not answer any more. */
function createCommands(options: RedisOptions) {
  let opening: Promise<GeneralClient> | undefined
  let isOpen = false
  let isClosed = false
  /** Commands that were late since the last answer in time, and when the first of them was. */
  const late = { count: 0, sinceMs: 0 }

  async function open(): Promise<GeneralClient> {
    const client = await openCommands(options)
    // Without a connection by then, commands fail at once, as during an outage.
    await within(openDeadlineMs, noAnswer, () => client.connected).catch(() => undefined)
    isOpen = true
    return client
  }

  function noteLate() {
    // While it is being opened, commands are late because of that.
    if (!isOpen) return
    if (late.count++ === 0) late.sinceMs = performance.now()
    if (late.count < lateMin || performance.now() - late.sinceMs < silentMaxMs) return
    late.count = 0
    closeWhenOpen(opening)
    opening = openCommands(options)
  }

  async function ask<T>(ms: number, work: (client: GeneralClient) => Promise<T>): Promise<T> {
    if (isClosed) throw new Error('The connection to Redis is closed')
    const patienceMs = isOpen ? ms : Math.max(ms, 2 * openDeadlineMs)
    const opened = (opening ??= open())
    try {
      const answer = await within(patienceMs, noAnswer, async () => work(await opened))
      late.count = 0
      return answer
    } catch (error) {
      if (error instanceof RedisLate) noteLate()
      throw error
    }
  }
  return {
    ask,
    close() {
      isClosed = true
      closeWhenOpen(opening)
    },
  }
}

const loadClient = () => import('./redis/general-client.ts')
const settingsOf = (options: RedisOptions) => ({ ...options, connectTimeoutMs, retryDelayMs })

async function openCommands(options: RedisOptions): Promise<GeneralClient> {
  const { openCluster, openSingle } = await loadClient()
  return options.isCluster ? openCluster(settingsOf(options)) : openSingle(settingsOf(options))
}

async function openSubscriber(options: RedisOptions): Promise<GeneralClient> {
  const { openSingle } = await loadClient()
  return openSingle(settingsOf(options), { isPatient: true })
}

/** What cannot be opened need not be closed. */
const closeWhenOpen = (client: Promise<GeneralClient> | undefined) =>
  void client?.then(
    (opened) => opened.close(),
    () => undefined,
  )

/** Functions are what every call runs; our own answer with a number or a string. */
const openFunctionWire = ({ url, onProblem, onReady }: RedisOptions, deadlineMs: number) =>
  openWire({
    url,
    deadlineMs,
    createLateError: noAnswer,
    silentMaxMs,
    retryDelayMs,
    connectTimeoutMs,
    onProblem,
    onReady,
  })
