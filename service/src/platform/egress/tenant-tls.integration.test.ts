import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'
import { createServer as createTcpServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { afterAll, expect, test } from 'vitest'

import { createTenantEgress, EgressFailed } from '#platform/egress.ts'

import {
  answering,
  closeServers,
  isPublic,
  listen,
  makeCertificate,
  standIn,
} from './testing/trap.ts'

// Which certificates the client for tenants accepts, call by call.

const own = makeCertificate()
const other = makeCertificate()
const call = { method: 'GET', deadlineMs: 10_000, answerLimitBytes: 1000 } as const
let answered = 0

afterAll(closeServers)

const startSink = (pair = own, options = {}) =>
  listen(
    createServer({ ...pair, ...options }, (_, response) => {
      answered += 1
      response.end('hello')
    }),
    standIn,
  )
const sinkPort = await startSink()
const sink = `https://sink.example.com:${sinkPort}/`

const createClient = (port = sinkPort) =>
  createTenantEgress({ privateTargets: [], isPublic, ports: [port], resolve: answering([standIn]) })

const trusted = { ca: own.cert }
const refused = {
  message: expect.stringMatching(/certificate .* not accepted/),
  isCertificate: true,
}

test('a call may bring its own certificates, and only that call trusts them', async () => {
  await using egress = createClient()
  for (const tls of [undefined, {}, { ca: other.cert }, { verify: true }]) {
    expect((await egress.request(sink, { ...call, tls: trusted })).status).toBe(200)
    await expect(egress.request(sink, { ...call, tls })).rejects.toMatchObject(refused)
  }
})

test('a connection that was opened without verification serves no call with verification', async () => {
  await using egress = createClient()
  const open = () => egress.request(sink, { ...call, tls: { verify: false } })
  expect((await open()).status).toBe(200)
  const before = answered
  for (const tls of [undefined, {}, { ca: other.cert }, { verify: true }]) {
    await expect(egress.request(sink, { ...call, tls })).rejects.toMatchObject(refused)
    const calls = [open(), egress.request(sink, { ...call, tls })]
    expect((await Promise.allSettled(calls)).map(({ status }) => status)).toEqual([
      'fulfilled',
      'rejected',
    ])
  }
  expect(answered).toBe(before + 4)
})

test('certificates of a call come on top of the usual ones, in a list with comments', async () => {
  const otherPort = await startSink(other)
  const ca = `The first one:\n${own.cert}\r\nand the second:\n\n${other.cert}\n`
  for (const port of [sinkPort, otherPort]) {
    await using egress = createClient(port)
    const address = `https://sink.example.com:${port}/`
    expect((await egress.request(address, { ...call, tls: { ca } })).status).toBe(200)
  }
})

const damaged = own.cert.replace(/[A-Za-z0-9+/]{20}\n/, 'AAAAAAAAAAAAAAAAAAAA\n')
test.each([
  ['', 'nothing'],
  ['certificate', 'a word'],
  [damaged, 'a damaged certificate'],
  [`${own.cert}${damaged}`, 'a damaged certificate after a good one'],
  [own.cert.slice(0, 300), 'a part of a certificate'],
  [own.key, 'a key'],
  [`${own.cert}${own.key}`, 'a certificate and a key'],
])('ca_cert that cannot be read is refused before anything is sent: %#', async (ca) => {
  await using egress = createClient()
  const before = answered
  for (const verify of [true, false]) {
    const error = await egress
      .request(sink, { ...call, tls: { ca, verify } })
      .catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(EgressFailed)
    expect(error).toMatchObject({
      message: 'The certificates in ca_cert cannot be read.',
      isCertificate: true,
    })
  }
  expect(answered).toBe(before)
})

test('more lists of certificates than are kept at once all work', { timeout: 60_000 }, async () => {
  await using egress = createClient()
  for (let index = 0; index < 40; index++) {
    const tls = { ca: `${index}\n${own.cert}` }
    expect((await egress.request(sink, { ...call, tls })).status).toBe(200)
  }
  expect((await egress.request(sink, { ...call, tls: { ca: `0\n${own.cert}` } })).status).toBe(200)
})

const startPlain = (server: Server) => listen(server, standIn)

test.each([
  { name: 'a certificate of its own signature', start: startSink, ca: other.cert },
  { name: 'another host name', start: startSink, host: 'sink.example.net' },
  {
    name: 'a server without TLS',
    start: () => startPlain(createHttpServer((_, response) => response.end())),
  },
  {
    name: 'a server that speaks something else',
    start: () => startPlain(createTcpServer((socket) => socket.end('220 smtp.example.com\r\n'))),
  },
  {
    name: 'a server that only knows old versions of TLS',
    start: () =>
      startSink(own, {
        minVersion: 'TLSv1',
        maxVersion: 'TLSv1.1',
        ciphers: 'DEFAULT@SECLEVEL=0',
      }),
  },
  {
    name: 'a server that wants a certificate of ours',
    start: () => startSink(own, { requestCert: true, maxVersion: 'TLSv1.2' }),
  },
])('$name is a failure of TLS', async ({ start, ca = own.cert, host = 'sink.example.com' }) => {
  const port = await start()
  await using egress = createClient(port)
  const before = answered
  const failing = egress.request(`https://${host}:${port}/`, { ...call, tls: { ca } })
  await expect(failing).rejects.toMatchObject({
    isCertificate: true,
    message: expect.stringMatching(/(?:certificate|handshake) .*\([A-Z0-9_/]+\)\.$/),
  })
  expect(answered).toBe(before)
})

test('an expired certificate is a failure of TLS', async () => {
  const expired = makeCertificate({ isExpired: true })
  const port = await startSink(expired)
  await using egress = createClient(port)
  const failing = egress.request(`https://sink.example.com:${port}/`, {
    ...call,
    tls: { ca: expired.cert },
  })
  await expect(failing).rejects.toMatchObject({
    isCertificate: true,
    message: 'The certificate of the destination was not accepted (CERT_HAS_EXPIRED).',
  })
})

test('certificates of NODE_EXTRA_CA_CERTS are trusted, with and without those of a call', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'egress-extra-'))
  const extra = join(folder, 'extra.pem')
  writeFileSync(extra, own.cert)
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href)
  const program = `
    const { createTenantEgress } = await import(${url('../egress.ts')})
    const options = { privateTargets: [], isPublic: () => true, ports: [${sinkPort}] }
    const resolve = async () => [{ address: '${standIn}' }]
    const egress = createTenantEgress({ ...options, resolve })
    for (const tls of [undefined, { ca: ${JSON.stringify(other.cert)} }]) {
      const call = { ...${JSON.stringify(call)}, tls }
      const answer = await egress.request('${sink}', call).catch((error) => error)
      console.log(answer.status ?? answer.message)
    }
    await egress.close()`
  const run = async (environment: object) => {
    const options = { env: { PATH: '/usr/bin', ...environment } }
    const flags = ['--input-type=module', '--eval', program]
    return (await promisify(execFile)(process.execPath, flags, options)).stdout.trim().split('\n')
  }
  expect(await run({ NODE_EXTRA_CA_CERTS: extra })).toEqual(['200', '200'])
  expect((await run({})).join(' ')).toMatch(/^(?:The certificate .*?\. ?){2}$/)
  rmSync(folder, { recursive: true })
})
