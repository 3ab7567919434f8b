import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import {
  createServer as createTcpServer,
  type AddressInfo,
  type Server,
  type Socket,
} from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { inspect } from 'node:util'

import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { Agent, EnvHttpProxyAgent, interceptors, type Dispatcher } from 'undici'
import { afterAll, afterEach, expect, test, vi } from 'vitest'

import { EgressBlocked } from './egress-target.ts'
import { createEgress, type Egress } from './egress.ts'
import { isPublicAddress } from './special-addresses.ts'

type Call = Parameters<Egress['request']>[1]

// --- The trap: every local address on three ports, counting connections, not only requests. ---

/** 127.0.0.2 stands for the internet: tests that need an allowed first hop call it public. */
const standIn = '127.0.0.2'
const isPublic = (address: string) => address === standIn || isPublicAddress(address)

const tls = makeCertificate()
const internet = { privateTargets: [], isPublic, ca: [tls.cert], resolve: answering([standIn]) }
const opened: Server[] = []
let trapped = 0
let answered = 0

const onRequest: RequestListener = (request, response) => {
  answered += 1
  const status = Number(/^\/redirect\/(\d+)/.exec(request.url ?? '')?.[1] ?? 200)
  const location = new URL(request.url ?? '/', 'https://x').searchParams.get('to') ?? '/'
  response.writeHead(status, { location, refresh: `0; url=${location}`, connection: 'close' })
  response.end('secret')
}

async function listen<T extends Server>(server: T, host = '127.0.0.1', port = 0): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen({ host, port, ipv6Only: true }, resolve)
  })
  opened.push(server)
  return (server.address() as AddressInfo).port
}

async function openTrap(): Promise<number> {
  const count = (socket: Socket) => {
    if (socket.localAddress !== standIn) trapped += 1
  }
  const trap = () => createHttpsServer(tls, onRequest).on('connection', count)
  const port = await listen(trap(), '0.0.0.0')
  await listen(trap(), '::', port).catch(() => 'This machine has no IPv6.')
  return port
}

const [port, secondPort, thirdPort] = [await openTrap(), await openTrap(), await openTrap()]
const trapPorts = [port, secondPort, thirdPort, 443]

afterEach(() => vi.unstubAllEnvs())
afterAll(() => {
  for (const server of opened) {
    server.close()
    if ('closeAllConnections' in server) (server.closeAllConnections as () => void)()
  }
})

function makeCertificate() {
  const folder = mkdtempSync(join(tmpdir(), 'egress-'))
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=sink', '-addext', 'subjectAltName=DNS:*.example.com']
  const kind = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
  const files = ['-keyout', key, '-out', cert]
  execFileSync('openssl', ['req', '-x509', ...kind, ...subject, ...files], { stdio: 'pipe' })
  const pair = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') }
  rmSync(folder, { recursive: true })
  return pair
}

/** Gives one list of addresses after the other, then the last one for ever. */
function answering(...turns: string[][]) {
  let turn = 0
  return async () => {
    const addresses = turns[Math.min(turn, turns.length - 1)] ?? []
    turn += 1
    return addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }))
  }
}

// --- The vectors. ---

type Vector = {
  name: string
  address: string
  /** What the resolver says, turn by turn. */
  turns?: string[][]
  call?: Partial<Call>
  privateTargets?: string[]
  environment?: Record<string, string>
  /** A refusal with this reason, or the status of the only server that may be met. */
  outcome: RegExp | number
}

const words = (text: string) => text.trim().split(/\s+/)
const sink = `https://sink.example.com:${port}/`
const inner = '127.0.0.1 10.0.0.1 169.254.169.254 192.168.0.1 172.16.0.1 100.100.100.200 8.8.8.8'
const outside = /outside the public internet/

const ipv4Forms = `
  127.0.0.1 127.1 127.0.1 127.0.0.2 127.255.255.254 2130706433 017700000001 0x7f000001 0x7F.1
  0177.0.0.1 0x7f.0x0.0x0.0x1 00000177.0.0.1 0x7f.0.1 127.0.0.1. 0 0.0.0.0 0x0 00 0.0 0.0.0.0.
  %31%32%37.0.0.1 127%2e0%2e0%2e1 %30 127.0.0.%31 ①②⑦.0.0.1 ⑫7.0.0.1 １２７.0.0.1 127。0。0。1
  127．0．0．1 127｡0｡0｡1 ０ ⓪ 0ｘ7f.1 １２７。０。０。１ 𝟏𝟐𝟕.𝟎.𝟎.𝟏 127.0.\u00ad0.1 12\u200b7.0.0.1
  169.254.169.254 2852039166 0xa9fea9fe 0251.0376.0251.0376 168.63.129.16 100.100.100.200 192.0.0.192
  10.0.0.1 10.1 192.168.1 172.16.0.1 255.255.255.255 4294967295 8.8.8.8 1.1`

const ipv6Forms = `
  [::1] [::] [0:0:0:0:0:0:0:1] [0000::0001] [::ffff:127.0.0.1] [::ffff:7f00:1] [::FFFF:7F00:1]
  [::127.0.0.1] [::7f00:1] [64:ff9b::7f00:1] [64:ff9b::127.0.0.1] [64:ff9b:1::1] [2002:7f00:1::]
  [fe80::1] [fec0::1] [fd00:ec2::254] [fd20:ce::254] [fc00::1] [ff02::1] [2606:4700:4700::1111]`

const innerNames = `
  localhost LOCALHOST LocalHost localhost. sub.localhost a.b.localhost. %6c%6f%63alhost ⓛocalhost
  ｌｏｃａｌｈｏｓｔ local\u00adhost local\u200bhost localhoſt printer.local printer.LOCAL printer.local.
  metadata.google.internal metadata.google.internal. METADATA.GOOGLE.INTERNAL instance-data.ec2.internal
  db.internal router.home.arpa 1.0.0.127.in-addr.arpa hidden.onion a.test a.invalid sink.example
  kubernetes.default.svc kubernetes.default.svc.cluster.local nas.lan wiki.corp wiki.intranet
  localhost.localdomain metadata kubernetes host-gateway sink ip6-localhost sink.example.com. .
  host.docker.internal gateway.docker.internal -a.example.com a_b.example.com *.example.com`

const oddAddresses = [
  ...words(`http://sink.example.com:${port}/ http://127.0.0.1:${port}/ http://localhost:${port}/
    ftp://127.0.0.1:${port}/ file:///etc/passwd file://127.0.0.1/etc/passwd gopher://127.0.0.1:${port}/
    ws://127.0.0.1:${port}/ wss://127.0.0.1:${port}/ unix:/var/run/docker.sock data:text/plain,a
    javascript:alert(1) blob:https://127.0.0.1:${port}/x https:127.0.0.1:${port} https:/127.0.0.1:${port}
    https:///127.0.0.1:${port}/ //127.0.0.1:${port}/ 127.0.0.1:${port} sink.example.com https://
    https://? https://# https://[::1 https://[::1]x:${port}/ https://127.0.0.1:${port}:443/
    https://[fe80::1%25lo]:${port}/ https://[::1%lo]:${port}/ https://sink.example.com:99999/
    https://0x.0x.0x.256:${port}/ https://127.0.0.1.5:${port}/ https://١٢٧.0.0.1:${port}/
    https://http://127.0.0.1:${port}/ https://${'a'.repeat(64)}.example.com:${port}/`),
  `https://sink.example.com:${port}\\@127.0.0.1:${port}/`,
  `https:\\\\127.0.0.1:${port}/`,
  `https://127.0.0.1:${port}\\.example.com/`,
  ` https://127.0.0.1:${port}/`,
  `https://127.0.\t0.1:${port}/`,
  `https://local\nhost:${port}/`,
  `https://127.0.0.1:${port}/ HTTP/1.1\r\nHost: sink.example.com`,
  `https://sink.example.com\u0000.127.0.0.1:${port}/`,
  `https://sink.example.com:${port}/${'a'.repeat(2048)}`,
]

const userInfo = words(`
  https://good.example.com@127.0.0.1:${port}/ https://good.example.com:443@127.0.0.1:${port}/
  https://@127.0.0.1:${port}/ https://:@sink.example.com:${port}/ https://user@sink.example.com:${port}/
  https://good.example.com%2f@localhost:${port}/ https://a@b@127.0.0.1:${port}/
  https://good.example.com%23@[::1]:${port}/ https://user:password@sink.example.com:${port}/`)

const specialAnswers = `
  0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.0 127.255.255.255
  169.254.0.0 169.254.255.255 172.16.0.0 172.31.255.255 192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255
  192.31.196.0 192.31.196.255 192.52.193.0 192.52.193.255 192.88.99.0 192.88.99.255 192.168.0.0
  192.168.255.255 192.175.48.0 192.175.48.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255
  203.0.113.0 203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255 127.0.0.1 127.0.0.53
  169.254.169.254 169.254.170.2 169.254.42.42 168.63.129.16 100.100.100.200 192.0.0.192
  :: ::1 ::ffff:0:0 64:ff9b:: 64:ff9b::ffff:ffff 64:ff9b:1:: 64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100::
  100::ffff:ffff:ffff:ffff 100:0:0:1:: 2001:: 2001:0:ffff:ffff:ffff:ffff:ffff:ffff 2001:1::1 2001:2::
  2001:3:: 2001:4:112:: 2001:10:: 2001:20:: 2001:2f:ffff:ffff:ffff:ffff:ffff:ffff 2001:30:: 2001:1ff::
  2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff 2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff
  2620:4f:8000:: 3ffe:: 3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff 4000:: 5f00:: 8000:: fc00::
  fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fd00:ec2::254 fd20:ce::254 fd00:42::42 fe80:: fe80::1%lo
  febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff fec0:: feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ff00:: ff02::1
  ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ::1%lo 2606:4700::1%lo localhost 127.1 0x7f.1 2130706433`

function hiddenForms(ipv4: string): string[] {
  const [a = 0, b = 0, c = 0, d = 0] = ipv4.split('.').map(Number)
  const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`
  return words(`
    ::ffff:${ipv4} ::ffff:${hex} ::${ipv4} 64:ff9b::${ipv4} 64:ff9b:1::${hex} 2002:${hex}::1
    2001:0:${hex}::1 ::ffff:0:${hex} fe80::5efe:${ipv4} 2400:cb00:1:2:0:5efe:${hex}
    2400:cb00:1:2:200:5efe:${hex}`)
}

const badHeaders: Record<string, string>[] = [
  ...words(`connection content-length expect host keep-alive proxy-authenticate proxy-authorization
    proxy-connection te trailer transfer-encoding upgrade Host HOST Transfer-Encoding`).map(
    (name) => ({
      [name]: 'chunked',
    }),
  ),
  ...[
    'a\r\nHost: 127.0.0.1',
    'a\nb',
    'a\rb',
    'a\0b',
    '\u010d\u010aHost: a',
    'a\u2028b',
    '\u007f',
  ].map((value) => ({ 'x-note': value })),
  ...['x\r\nHost', 'x y', 'x:y', '', 'x\0', ':authority', 'hóst', 'x\t'].map((name) => ({
    [name]: 'a',
  })),
]

const mixed = [
  [standIn, '127.0.0.1'],
  ['127.0.0.1', standIn],
  [standIn, '::1'],
  [standIn, standIn, '10.0.0.1'],
  ['93.184.216.34', '2606:4700::1111', 'fd00::1'],
  [standIn, '::ffff:127.0.0.1'],
  [standIn, 'fe80::1%lo'],
  [standIn, ''],
]

const listedLocal = [`127.0.0.1:${secondPort}`, `ollama.example.com:${secondPort}`]

const vectors: Vector[] = [
  ...words(`${ipv4Forms} ${ipv6Forms}`).map((host) => ({
    name: `host ${host}`,
    address: `https://${host}:${port}/`,
    outcome: /not an IP address|not a valid URL/,
  })),
  ...words(innerNames).map((host) => ({
    name: `name ${host}`,
    address: `https://${host}:${port}/`,
    turns: [['127.0.0.1']],
    outcome: /private networks|full host name|not a valid URL/,
  })),
  ...oddAddresses.map((address) => ({
    name: `address ${address.slice(0, 90)}`,
    address,
    turns: [['127.0.0.1']],
    outcome: /./,
  })),
  ...userInfo.map((address) => ({ name: `user ${address}`, address, outcome: /user name/ })),
  ...[...words(specialAnswers), ...words(inner).flatMap(hiddenForms)].map((answer) => ({
    name: `answer ${answer}`,
    address: sink,
    turns: [[answer]],
    outcome: outside,
  })),
  ...mixed.map((answers) => ({
    name: `mixed answers ${answers.join(' ')}`,
    address: sink,
    turns: [answers],
    outcome: outside,
  })),
  ...words(`0 1 22 25 53 80 444 2375 5432 6379 8080 8088 9200 10250 65535 ${port}`).map(
    (number) => ({
      name: `port ${number}`,
      address: `https://sink.example.com:${number}/`,
      turns: [['127.0.0.1']],
      call: { ports: [443] },
      outcome: /port is not one of 443/,
    }),
  ),
  ...badHeaders.map((headers) => ({
    name: `header ${JSON.stringify(headers)}`,
    address: sink,
    turns: [[standIn]],
    call: { headers },
    outcome: /header/,
  })),
  ...words(`http://127.0.0.1:${port}/ http://127.0.0.1:${thirdPort}/ http://127.0.0.2:${secondPort}/
    http://[::ffff:127.0.0.1]:${secondPort}/ http://localhost:${secondPort}/ http://0:${secondPort}/
    http://ollama.example.com:${port}/ http://ollama.example.com.:${secondPort}/
    http://ollama.example.com.evil.example.net:${secondPort}/ http://a.ollama.example.com:${secondPort}/
    http://ollama.example.com:${secondPort}@127.0.0.1:${port}/ https://ollama.example.com:${port}/
    https://evil.example.net:${port}/?ollama.example.com:${secondPort}`).map((address) => ({
    name: `beside the operator's list ${address}`,
    address,
    turns: [['127.0.0.1']],
    privateTargets: listedLocal,
    outcome: /./,
  })),
  ...[301, 302, 303, 307, 308].flatMap((status) =>
    [`https://127.0.0.1:${port}/`, `https://[::1]:${secondPort}/`, '//localhost/'].map((to) => ({
      name: `redirect ${status} to ${to}`,
      address: `${sink}redirect/${status}?to=${encodeURIComponent(to)}`,
      turns: [[standIn], ['127.0.0.1']],
      outcome: status,
    })),
  ),
  ...words('HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy').map((name) => ({
    name: `proxy from ${name}`,
    address: sink,
    turns: [[standIn]],
    environment: { [name]: `http://127.0.0.1:${port}`, NODE_USE_ENV_PROXY: '1', NO_PROXY: '' },
    outcome: 200,
  })),
]

// Ports differ from run to run; the names of the tests should not.
for (const vector of vectors) {
  for (const [index, number] of [port, secondPort, thirdPort].entries()) {
    vector.name = vector.name.replaceAll(`:${number}`, `:<trap ${index + 1}>`)
  }
}

const usual = { method: 'GET', deadlineMs: 2000, answerLimitBytes: 1000, ports: trapPorts } as const

/** The address check stays the real one unless a vector needs the stand-in. */
function egressFor({ turns = [['127.0.0.1']], privateTargets = [], outcome }: Vector): Egress {
  const resolve = answering(...turns)
  if (typeof outcome === 'number') return createEgress({ ...internet, resolve })
  const needsStandIn = turns.flat().includes(standIn)
  return createEgress({ privateTargets, resolve, ...(needsStandIn && { isPublic }) })
}

test('there are at least 200 different vectors', () => {
  const different = new Set(vectors.map(({ name }) => name))
  expect(different.size).toBe(vectors.length)
  expect(different.size).toBeGreaterThanOrEqual(200)
})

test.each(vectors)('never reaches the trap: $name', async (vector) => {
  for (const [name, value] of Object.entries(vector.environment ?? {})) vi.stubEnv(name, value)
  await using egress = egressFor(vector)
  const before = trapped
  const result = await egress
    .request(vector.address, { ...usual, ...vector.call })
    .catch((error: unknown) => error)

  if (typeof vector.outcome === 'number') {
    expect(result).toMatchObject({ status: vector.outcome })
  } else {
    expect(result).toBeInstanceOf(EgressBlocked)
    expect(result).toMatchObject({ reason: expect.stringMatching(vector.outcome) })
  }
  expect(trapped).toBe(before)
})

test.each([
  { name: 'public, then private', turns: [[standIn], ['127.0.0.1']], reached: [200, 0, 0, 0] },
  { name: 'private, then public', turns: [['127.0.0.1'], [standIn]], reached: [0, 200, 200, 200] },
  {
    name: 'now and then',
    turns: [[standIn], ['::1'], [standIn], ['10.0.0.1']],
    reached: [200, 0, 200, 0],
  },
])(
  'a resolver whose answers change ($name) never leads to the trap',
  async ({ turns, reached }) => {
    await using egress = createEgress({ ...internet, resolve: answering(...turns) })
    const before = trapped
    const statuses: number[] = []
    for (const _ of reached) {
      const result = await egress.request(sink, usual).catch((error: unknown) => error)
      if (!(result instanceof EgressBlocked)) expect(result).toHaveProperty('status')
      statuses.push(result instanceof EgressBlocked ? 0 : (result as { status: number }).status)
    }
    expect(statuses).toEqual(reached)
    expect(trapped).toBe(before)
  },
)

// --- The trap works: what has no guard does reach it. ---

async function reaches(agent: Dispatcher, address: string): Promise<boolean> {
  const before = trapped
  const signal = AbortSignal.timeout(1000)
  const { origin, pathname, search } = new URL(address)
  const answer = await agent
    .request({ origin, path: pathname + search, method: 'GET', signal })
    .catch(() => undefined)
  await answer?.body.dump().catch(() => undefined)
  return trapped > before
}

test('without the guard the same spellings of a local address do reach the trap', async () => {
  await using agent = withDispose(new Agent({ connect: { rejectUnauthorized: false } }))
  const local = vectors.filter(({ name, address }) => {
    const host = name.startsWith('host ') ? URL.parse(address)?.hostname : undefined
    return host === '127.0.0.1' || host === '0.0.0.0'
  })
  const reached: string[] = []
  for (const { name, address } of local) if (await reaches(agent, address)) reached.push(name)
  expect(reached).toEqual(local.map(({ name }) => name))
  expect(reached.length).toBeGreaterThanOrEqual(25)
})

test('without the guard a redirect, a proxy variable and a changed answer do reach the trap', async () => {
  const lookup = (turns: string[]) => (_: string, __: object, done: LookupDone) =>
    done(null, [{ address: turns.shift() ?? '127.0.0.1', family: 4 }])
  const naive = (turns: string[]) =>
    new Agent({ connect: { rejectUnauthorized: false, lookup: lookup(turns) } })
  const follow = interceptors.redirect({ maxRedirections: 2 })
  const redirect = `${sink}redirect/302?to=${encodeURIComponent(`https://127.0.0.1:${port}/`)}`

  await using agent = withDispose(naive([standIn]))
  expect(await reaches(agent.compose(follow), redirect)).toBe(true)
  await using changing = withDispose(naive([standIn, '127.0.0.1']))
  expect(await reaches(changing, sink)).toBe(false)
  expect(await reaches(changing, sink)).toBe(true)
  vi.stubEnv('https_proxy', `http://127.0.0.1:${port}`)
  await using proxied = withDispose(new EnvHttpProxyAgent())
  expect(await reaches(proxied, sink)).toBe(true)
})

type LookupDone = (error: null, addresses: { address: string; family: number }[]) => void

const withDispose = <T extends Dispatcher>(agent: T): T & AsyncDisposable =>
  Object.assign(agent, { [Symbol.asyncDispose]: () => agent.destroy() })

// --- What is allowed works, within its limits. ---

async function local(onLocal: RequestListener, options: Partial<typeof quick> = {}) {
  const localPort = await listen(createHttpServer(onLocal))
  const target = `127.0.0.1:${localPort}`
  const egress = createEgress({ ...quick, privateTargets: [target], ...options })
  return { egress, address: `http://${target}/in?a=b` }
}
const quick = { connectTimeoutMs: 400, resolve: answering(['127.0.0.1']) }

test('a private target on the list of the operator is reached, with method, headers and body', async () => {
  const { egress, address } = await local((request, response) => {
    const { method, url, headers } = request
    request.pipe(response.setHeader('x-seen', [method, url, headers['x-note']].join(' ')))
  })
  const call = { ...usual, method: 'POST', headers: { 'x-note': 'hi' }, body: 'hello' } as const
  const answer = await egress.request(address, call)
  expect(answer).toMatchObject({ status: 200, headers: { 'x-seen': 'POST /in?a=b hi' } })
  expect(answer.body.toString()).toBe('hello')
  await egress.close()
  await expect(egress.request(address, call)).rejects.toThrow('UND_ERR')
})

test('a public name is reached over verified TLS', async () => {
  await using egress = createEgress(internet)
  const answer = await egress.request(sink, usual)
  expect({ ...answer, body: answer.body.toString() }).toMatchObject({ status: 200, body: 'secret' })
})

test('a wrong certificate is refused whatever the environment says', async () => {
  vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0')
  const before = answered
  await using strict = createEgress({ privateTargets: [], isPublic, resolve: answering([standIn]) })
  await expect(strict.request(sink, usual)).rejects.toThrow(/certificate .* not accepted/)
  await using egress = createEgress(internet)
  const otherName = sink.replace('example.com', 'example.net')
  await expect(egress.request(otherName, usual)).rejects.toThrow(/certificate .* not accepted/)
  expect(answered).toBe(before)
})

test('the address of the socket is checked again: 0.0.0.0 may pass, 127.0.0.1 behind it may not', async () => {
  const before = answered
  await using egress = createEgress({
    privateTargets: [],
    ca: [tls.cert],
    isPublic: (address) => address === '0.0.0.0',
    resolve: answering(['0.0.0.0']),
  })
  await expect(egress.request(sink, usual)).rejects.toThrow(outside)
  expect(answered).toBe(before)
})

const never = () => new Promise<never>(() => undefined)
const silentTcpPort = await listen(createTcpServer((socket) => socket.on('error', () => undefined)))

test.each([
  { name: 'a silent server', onLocal: () => undefined },
  { name: 'a silent TLS server', address: `https://127.0.0.1:${silentTcpPort}/` },
  { name: 'a silent resolver', address: 'http://slow.example.com:81/', resolve: never },
  {
    name: 'a dripping answer',
    onLocal: ((_, response) => {
      const timer = setInterval(() => response.write('.'), 20)
      response.on('close', () => clearInterval(timer))
    }) satisfies RequestListener,
  },
])('the deadline covers $name', async ({ onLocal = () => undefined, address, resolve }) => {
  const started = await local(onLocal)
  const privateTargets = [new URL(address ?? started.address).host]
  await using egress = createEgress({ ...quick, privateTargets, ...(resolve && { resolve }) })
  const ratio = await waitingRatio('the deadline', 500, async () => {
    const late = egress.request(address ?? started.address, { ...usual, deadlineMs: 500 })
    await expect(late).rejects.toThrow('The destination did not answer within 500 ms.')
  })
  expect(ratio).toBeLessThan(5)
})

test('a call that ran out of time while connecting sends nothing afterwards', async () => {
  let received = 0
  const resolve = () => wait(200, [{ address: '127.0.0.1', family: 4 }])
  const { address } = await local(() => (received += 1))
  const named = address.replace('127.0.0.1', 'late.example.com')
  await using egress = createEgress({ privateTargets: [new URL(named).host], resolve })
  await expect(egress.request(named, { ...usual, deadlineMs: 50 })).rejects.toThrow(/within 50 ms/)
  await wait(400)
  expect(received).toBe(0)
})

test('an answer over the limit is cut, one at the limit is not', async () => {
  let hungUp = 0
  const { egress, address } = await local((request, response) => {
    if (request.method === 'GET') return response.end('a'.repeat(1000))
    const timer = setInterval(() => response.write('a'.repeat(500)), 5)
    return response.on('close', () => clearInterval(timer)).on('close', () => (hungUp += 1))
  })
  expect((await egress.request(address, usual)).body).toHaveLength(1000)
  const endless = egress.request(address, { ...usual, method: 'POST' })
  await expect(endless).rejects.toThrow('The answer is larger than 1000 bytes.')
  await expect.poll(() => hungUp).toBe(1)
  await egress.close()
})

test('a caller may cancel before and during the call', async () => {
  const { egress, address } = await local(() => undefined)
  for (const signal of [AbortSignal.abort(), AbortSignal.timeout(50)]) {
    await expect(egress.request(address, { ...usual, signal })).rejects.toThrow(/was cancelled/)
  }
  await egress.close()
})

test('failures are one plain sentence, without addresses, headers or pieces of the answer', async () => {
  const babbling = await listen(createTcpServer((socket) => socket.end('canary canary\r\n\r\n')))
  const hasty = await listen(createTcpServer((socket) => socket.destroy()))
  const unresolved = () => Promise.reject(Object.assign(new Error('canary'), { code: 'ENOTFOUND' }))
  const headers = { authorization: 'canary' }
  const outcomes = [
    [`http://127.0.0.1:${babbling}/`, /call to the destination failed \(HTTPParserError\)/],
    [`http://127.0.0.1:${hasty}/`, /closed the connection/],
    ['http://127.0.0.1:1/', /refused the connection/],
    ['http://gone.example.com:81/', /could not be resolved/],
    [sink, /could not be resolved/],
  ] as const
  const privateTargets = outcomes.map(([address]) => new URL(address).host)
  await using egress = createEgress({ privateTargets, resolve: unresolved })
  for (const [address, sentence] of outcomes) {
    const error = await egress
      .request(address, { ...usual, headers })
      .catch((thrown: Error) => thrown)
    expect(error).toMatchObject({ message: expect.stringMatching(sentence) })
    expect(inspect(error, { depth: 9 })).not.toMatch(/canary/)
    expect((error as Error).message).not.toMatch(/\n|127\.0\.0\.1/)
  }
})

test('CVE-2026-1525 and its siblings: the HTTP client is none of the affected releases', () => {
  const file = new URL('../../node_modules/undici/package.json', import.meta.url)
  const { version } = JSON.parse(readFileSync(file, 'utf8')) as { version: string }
  const [major = 0, minor = 0] = version.split('.').map(Number)
  expect(major > 7 || (major === 7 && minor >= 24)).toBe(true)
})
