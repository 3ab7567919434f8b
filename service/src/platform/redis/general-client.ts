import { createClient, createCluster, RESP_TYPES } from 'redis'

// The general client, as far as `redis.ts` needs it. It knows every command of Redis and takes long to load.

export type RedisArgument = string | Buffer

export type ClientOptions = {
  url: string
  onProblem: (error: Error) => void
  onReady: () => void
  connectTimeoutMs: number
  /** How long to wait before the next try to connect. */
  retryDelayMs: (retries: number) => number
}

export type GeneralClient = {
  /** Resolves when the first try to connect has succeeded or failed. */
  connected: Promise<void>
  send(key: string, args: readonly RedisArgument[]): Promise<unknown>
  sendToPrimaries(args: readonly RedisArgument[]): Promise<void>
  subscribe(channel: string, onMessage: (message: string) => void): Promise<void>
  close(): void
}

const socketOf = ({ connectTimeoutMs, retryDelayMs }: ClientOptions) => ({
  connectTimeout: connectTimeoutMs,
  reconnectStrategy: retryDelayMs,
})

type Connectable = {
  once(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
}

/** Connects; resolves when the first try has ended. Later tries go on in the background, and failed ones emit 'error'. */
function connect(client: Connectable, onProblem: (error: Error) => void): Promise<void> {
  return new Promise((resolve) => {
    client.once('error', () => resolve())
    void client
      .connect()
      .catch(onProblem)
      .then(() => resolve())
  })
}

/** RESP2, in which every answer is a number, a string or a list. */
const protocol = { RESP: 2 } as const

const asBytes = { typeMapping: { [RESP_TYPES.BLOB_STRING]: Buffer } }

/** A patient client queues commands until it is connected: for subscriptions. */
export function openSingle(options: ClientOptions, { isPatient = false } = {}): GeneralClient {
  const { url, onProblem, onReady } = options
  const socket = socketOf(options)
  const client = createClient({ ...protocol, url, disableOfflineQueue: !isPatient, socket })
  client.on('error', onProblem)
  client.on('ready', onReady)
  return {
    connected: connect(client, onProblem),
    send: (_, args) => client.sendCommand([...args], asBytes),
    sendToPrimaries: async (args) => {
      await client.sendCommand([...args], asBytes)
    },
    subscribe: async (channel, onMessage) => {
      await client.subscribe(channel, onMessage)
    },
    close: () => client.destroy(),
  }
}

export function openCluster(options: ClientOptions): GeneralClient {
  const { url, onProblem, onReady } = options
  const cluster = createCluster({
    rootNodes: [{ url }],
    ...protocol,
    defaults: { disableOfflineQueue: true, socket: socketOf(options) },
    maxCommandRedirections: 4,
  })
  cluster.on('error', onProblem)
  cluster.on('node-ready', onReady)
  return {
    connected: connect(cluster, onProblem),
    send: (key, args) => cluster.sendCommand(key, false, [...args], asBytes),
    sendToPrimaries: async (args) => {
      if (cluster.masters.length === 0) throw new Error('The cluster is not connected yet')
      for (const node of cluster.masters) {
        const client = await cluster.nodeClient(node)
        await client.sendCommand([...args], asBytes)
      }
    },
    subscribe: () =>
      Promise.reject(new Error('Subscriptions use a connection to one server, not to a cluster.')),
    close: () => cluster.destroy(),
  }
}
