import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Server, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { isPublicAddress } from '#platform/egress/special-addresses.ts'

/** 127.0.0.2 stands for the internet: tests that need an allowed first hop call it public. */
export const standIn = '127.0.0.2'
export const isPublic = (address: string) => address === standIn || isPublicAddress(address)

/** Gives one list of addresses after the other, then the last one for ever. */
export function answering(...turns: string[][]) {
  let turn = 0
  return async () => {
    const addresses = turns[Math.min(turn, turns.length - 1)] ?? []
    turn += 1
    return addresses.map((address) => ({ address }))
  }
}

/** A key and a certificate of its own signature, for two days or until yesterday. */
export function makeCertificate({ isExpired = false } = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'egress-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const openssl = (...words: string[]) => execFileSync('openssl', words, { stdio: 'pipe' })
  const subject = ['-subj', '/CN=sink', '-addext', 'subjectAltName=DNS:*.example.com']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  openssl('req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert)
  if (isExpired) openssl('x509', '-in', cert, '-signkey', key, '-days', '-1', '-out', cert)
  const pair = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  rmSync(folder, { recursive: true })
  return pair
}

const opened: Server[] = []

export function closeServers() {
  for (const server of opened.splice(0)) {
    server.close()
    if ('closeAllConnections' in server) (server.closeAllConnections as () => void)()
  }
}

/** Listens until `closeServers`, which a file calls after its tests, and returns the port. */
export async function listen(server: Server, host = '127.0.0.1', port = 0): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host, port, ipv6Only: true }, resolve)
  })
  opened.push(server)
  return (server.address() as AddressInfo).port
}

/** Every local address on three ports, counting connections, not only requests. */
export async function openTraps() {
  const tls = makeCertificate()
  const counts = { trapped: 0, answered: 0 }

  const onRequest: RequestListener = (request, response) => {
    counts.answered += 1
    const status = Number(/^\/redirect\/(\d+)/.exec(request.url ?? '')?.[1] ?? 200)
    const location = new URL(request.url ?? '/', 'https://x').searchParams.get('to') ?? '/'
    response.writeHead(status, { location, refresh: `0; url=${location}`, connection: 'close' })
    response.end('secret')
  }
  const count = (socket: Socket) => {
    if (socket.localAddress !== standIn) counts.trapped += 1
  }
  async function openTrap(): Promise<number> {
    const trap = () => createHttpsServer(tls, onRequest).on('connection', count)
    const port = await listen(trap(), '0.0.0.0')
    await listen(trap(), '::', port).catch(() => 'This machine has no IPv6.')
    return port
  }
  const ports = [await openTrap(), await openTrap(), await openTrap()] as const
  return { tls, counts, ports }
}
export type Traps = Awaited<ReturnType<typeof openTraps>>
