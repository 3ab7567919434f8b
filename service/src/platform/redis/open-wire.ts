import { connect as connectTcp, type Socket } from 'node:net'
import { connect as connectTls } from 'node:tls'

import { within } from '#platform/deadline.ts'

import { createPendingCommands } from './pending-commands.ts'
import { createAnswerReader, encodeCommand } from './resp.ts'

type Command = readonly (string | Buffer)[]

type Options = {
  url: string
  /** How long a command may take. */
  deadlineMs: number
  createLateError: () => Error
  /** Commands without an answer block all later ones: after this time without any answer the connection is replaced. */
  silentMaxMs: number
  /** How long to wait before the next try to connect. */
  retryDelayMs: (retries: number) => number
  connectTimeoutMs: number
  onProblem: (error: Error) => void
  onReady: () => void
}

/**
 * A connection for the commands that every call sends. The general client spends several times as long on one as the
 * server does, on an abort signal, timers and promises. Here the commands of one turn of the event loop are one write, and
 * one timer watches their deadlines. Nothing waits for an outage to end: until the server has answered the greeting,
 * commands fail at once, and none is sent again. Reconnection goes on in the background for ever.
 */
export function openWire(options: Options) {
  let isClosed = false
  let retries = 0
  let retryTimer: NodeJS.Timeout | undefined
  let connection = open()

  function open() {
    return openConnection(options, {
      onReady() {
        retries = 0
        options.onReady()
      },
      onClosed(error) {
        if (isClosed) return
        options.onProblem(error)
        retryTimer = setTimeout(() => (connection = open()), options.retryDelayMs(retries++))
      },
    })
  }

  return {
    /** Sends one command, whose answer must be a number or a string. */
    send: (command: Command): Promise<unknown> => connection.send(command, { hasDeadline: true }),
    /** As `send`, for a command that may take longer. Without an answer by then, the connection is replaced. */
    sendSlow: (command: Command, ms: number): Promise<unknown> => {
      const asked = connection
      const giveUp = () => {
        // After this error, which says why.
        setImmediate(asked.close)
        return options.createLateError()
      }
      return within(ms, giveUp, () => asked.send(command, { hasDeadline: false }))
    },
    close() {
      isClosed = true
      clearTimeout(retryTimer)
      connection.close()
    },
  }
}

type Events = { onReady: () => void; onClosed: (error: Error) => void }

const refused = () => new Error('Redis did not answer the greeting in time')
const silent = () => new Error('Redis has stopped answering')
const lost = () => new Error('The connection to Redis was lost')

function openConnection(options: Options, { onReady, onClosed }: Events) {
  const url = new URL(options.url)
  const socket = openSocket(url)
  const pending = createPendingCommands({ ...options, onSilence: () => close(silent()) })
  const read = createAnswerReader(pending.answerFirst)
  const connectTimer = setTimeout(() => close(refused()), options.connectTimeoutMs)
  let isReady = false
  let isOpen = true
  let unsent = ''

  function flush() {
    if (isOpen) socket.write(unsent, 'latin1')
    unsent = ''
  }

  function write(command: Command) {
    if (unsent === '') setImmediate(flush)
    unsent += encodeCommand(command)
  }

  function close(error: Error) {
    if (!isOpen) return
    isOpen = false
    isReady = false
    clearTimeout(connectTimer)
    socket.destroy()
    pending.rejectAll(error)
    onClosed(error)
  }

  function accept() {
    if (!isOpen) return
    clearTimeout(connectTimer)
    isReady = true
    onReady()
  }

  socket.on('error', close)
  socket.on('close', () => close(lost()))
  socket.on('data', (chunk) => {
    try {
      read(chunk)
    } catch (error) {
      close(error as Error)
    }
  })
  const greeting = greetingOf(url).map((command) => {
    write(command)
    return pending.add({ hasDeadline: false })
  })
  Promise.all(greeting).then(accept, close)

  return {
    send(command: Command, terms: { hasDeadline: boolean }): Promise<unknown> {
      if (!isReady) return Promise.reject(new Error('Redis is not connected at the moment'))
      write(command)
      return pending.add(terms)
    },
    close: () => close(lost()),
  }
}

function openSocket({ protocol, hostname, port }: URL): Socket {
  const host = hostname.replace(/^\[(.*)\]$/, '$1') // an IPv6 address
  const address = { host, port: Number(port || 6379), noDelay: true }
  const socket = protocol === 'rediss:' ? connectTls(address) : connectTcp(address)
  return socket.setKeepAlive(true, 5000)
}

/** What the server must answer before the first command: the credentials, the database, and that it is there. */
function greetingOf({ username, password, pathname }: URL): Command[] {
  const commands: Command[] = []
  const secret = decodeURIComponent(password)
  if (username) commands.push(['AUTH', decodeURIComponent(username), secret])
  else if (secret) commands.push(['AUTH', secret])
  const database = pathname.slice(1)
  if (database) commands.push(['SELECT', database])
  commands.push(['PING'])
  return commands
}
