import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A request to a double, after its body was read. */
export type DoubleRequest = {
  method: string
  url: URL
  headers: IncomingHttpHeaders
  body: Buffer
}
/** `hang` never answers, `reset` ends the connection. */
export type DoubleAnswer =
  | { status: number; headers?: Record<string, string>; body?: string }
  | 'hang'
  | 'reset'

type Answer = (request: DoubleRequest) => DoubleAnswer | Promise<DoubleAnswer>
type Intervened = DoubleAnswer | undefined
type Intervention = (request: DoubleRequest) => Intervened | Promise<Intervened>

/** A destination of audit events that listens on a TLS socket and checks the protocol strictly. */
export type DestinationDouble = AsyncDisposable & {
  /** `https://localhost:<port>`, without a path. */
  readonly endpoint: string
  /** The certificate to trust, in PEM. */
  readonly ca: string
  /** The records in the order of their arrival; those that arrive again are in it again. */
  readonly received: Record<string, unknown>[]
  /** What a real destination would not have accepted. */
  readonly problems: string[]
  /** Answers in place of the destination wherever it returns an answer; without one, the destination does when it is done. */
  intervene(intervention: Intervention | undefined): void
}

type Started = Omit<DestinationDouble, 'received' | 'problems'>

/** Starts a server on a TLS socket of this machine, on a free port unless one is given. */
export async function startDouble(answer: Answer, port = 0): Promise<Started> {
  const { key, cert } = createCertificate()
  let intervention: Intervention | undefined
  const serve = async (request: IncomingMessage, response: ServerResponse) => {
    const chunks: Buffer[] = []
    for await (const chunk of request) chunks.push(chunk as Buffer)
    const url = new URL(request.url ?? '/', 'https://localhost')
    const received = {
      method: request.method ?? '',
      url,
      headers: request.headers,
      body: Buffer.concat(chunks),
    }
    const given = (await intervention?.(received)) ?? (await answer(received))
    if (given === 'hang') return
    if (given === 'reset') return void request.socket.destroy()
    response.writeHead(given.status, given.headers)
    response.end(given.body)
  }
  const server = createServer({ key, cert }, (request, response) => {
    serve(request, response).catch(() => request.socket.destroy())
  })
  server.on('clientError', (_, socket) => socket.destroy())
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve))
  const stop = () => {
    server.closeAllConnections()
    return new Promise<void>((resolve) => server.close(() => resolve()))
  }
  return {
    endpoint: `https://localhost:${(server.address() as AddressInfo).port}`,
    ca: cert,
    intervene: (given) => void (intervention = given),
    [Symbol.asyncDispose]: stop,
  }
}

let certificate: { key: string; cert: string } | undefined

/** One certificate for all doubles of a process: a service that is told to trust it trusts all of them. */
function createCertificate() {
  if (certificate) return certificate
  const folder = mkdtempSync(join(tmpdir(), 'gatehouse-double-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost']
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, '-keyout', key, '-out', cert], {
    stdio: 'pipe',
  })
  certificate = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  rmSync(folder, { recursive: true })
  return certificate
}
