import type { FastifyInstance } from 'fastify'

export type ListenAddress = {
  host: string
  port: number
  /** The names of the settings that the host and the port come from. */
  settings: { host: string; port: string }
}

/** Starts to listen and returns the URL. A failure says which settings to change. */
export async function listen(app: FastifyInstance, address: ListenAddress): Promise<string> {
  const { host, port } = address
  try {
    return await app.listen({ host, port })
  } catch (error) {
    throw new Error(`Cannot listen on ${host}:${port}: ${explain(error, address)}`, {
      cause: error,
    })
  }
}

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
