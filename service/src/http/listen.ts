import { type AddressInfo, createServer, type ListenOptions, type Server } from 'node:net'

import type { FastifyInstance, FastifyListenOptions } from 'fastify'

export type ListenAddress = {
  host: string
  port: number
  /** The names of the settings that the host and the port come from. */
  settings: { host: string; port: string }
  /** Whether many connections may come at once, also while the process is busy. */
  isBusy?: boolean
  /** Whether our other processes listen on this port too. `reservePort` has then made sure that no other program does. */
  isShared?: boolean
}

/**
 * How many connections may wait to be accepted; the operating system may allow fewer. A client whose connection does not fit
 * retries after one second, then after three, then after seven.
 */
const backlog = 4096

/** Starts to listen and returns the URL. A failure says which settings to change. */
export async function listen(app: FastifyInstance, address: ListenAddress): Promise<string> {
  const { host, port } = address
  try {
    if (address.isBusy && canSharePort) return await listenMany(app, address)
    return await app.listen({ host, port, backlog })
  } catch (error) {
    throw explained(error, address)
  }
}

/**
 * Finds a port that several processes will share: the port of the address, unless another program listens on it, or any free
 * port if the address says 0. A free port stays bound until it is released. No client knows it yet, so none connects in the
 * meantime.
 */
export async function reservePort(address: ListenAddress) {
  const { host, port } = address
  try {
    const isOpen = port === 0 && canSharePort
    const server = await listenOn(createServer(), { host, port, reusePort: isOpen })
    const found = server.address() as AddressInfo
    if (!isOpen) await close(server)
    return { port: found.port, release: async () => (isOpen ? close(server) : undefined) }
  } catch (error) {
    throw explained(error, address)
  }
}

/** Node accepts one connection per turn of the event loop and listener. */
const listeners = 32
const canSharePort = process.platform === 'linux'

/**
 * Listens with several sockets on one port. With a single socket, a busy process whose event loop turns 25 times a second would
 * accept 25 connections a second, and callers would wait for seconds before they could even be refused.
 */
async function listenMany(app: FastifyInstance, address: ListenAddress): Promise<string> {
  const { host, port, isShared } = address
  // Binding a shared port succeeds even if another program shares it, so we first bind it unshared to find out.
  if (port !== 0 && !isShared) await close(await listenOn(createServer(), { host, port }))
  const others = Array.from({ length: listeners - 1 }, () => createAcceptor(app))
  const closed: Promise<void>[] = []
  app.addHook('preClose', async () => void closed.push(...others.map(close)))
  app.addHook('onClose', async () => void (await Promise.all(closed)))
  const shared = { host, port, backlog, reusePort: true }
  const url = await app.listen(shared as FastifyListenOptions)
  // Not from the URL, which leaves out port 80.
  const { port: listening } = app.server.address() as AddressInfo
  const options = { ...shared, port: listening }
  await Promise.all(others.map((server) => listenOn(server, options)))
  return url
}

/** Accepts connections for the HTTP server; the options are those of its own listener. */
const createAcceptor = (app: FastifyInstance): Server =>
  createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    app.server.emit('connection', socket)
  })

function listenOn(server: Server, options: ListenOptions): Promise<Server> {
  const { promise, resolve, reject } = Promise.withResolvers<Server>()
  server.once('error', reject).listen(options, () => resolve(server))
  return promise
}

/** Stops accepting connections; resolves when the last one is closed. */
const close = (server: Server) => new Promise<void>((resolve) => server.close(() => resolve()))

const explained = (error: unknown, address: ListenAddress) =>
  new Error(`Cannot listen on ${address.host}:${address.port}: ${explain(error, address)}`, {
    cause: error,
  })

function explain(error: unknown, { settings }: ListenAddress): string {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'EADDRINUSE':
      return `the port is already in use. Stop the program that uses it, or set ${settings.port} to another port.`
    case 'EACCES':
      return `this user may not listen on the port. Set ${settings.port} to a port from 1024.`
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return `the host is not an address of this machine. Correct ${settings.host}.`
    default:
      return `${message}. Check ${settings.host} and ${settings.port}.`
  }
}
