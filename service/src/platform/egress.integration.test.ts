import { readFileSync } from 'node:fs'
import { createServer as createHttpServer, type RequestListener } from 'node:http'
import { createServer as createTcpServer } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { inspect } from 'node:util'

import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { Agent, EnvHttpProxyAgent, interceptors, type Dispatcher } from 'undici'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'

import { EgressBlocked } from './egress-target.ts'
import { createEgress, createTenantEgress } from './egress.ts'
import { ssrfVectors, type Vector } from './egress/testing/ssrf-vectors.ts'
import {
  answering,
  closeServers,
  isPublic,
  listen,
  openTraps,
  standIn,
} from './egress/testing/trap.ts'

const { tls, counts, ports: traps } = await openTraps()
const [port] = traps
const vectors = ssrfVectors(traps)
const internet = { privateTargets: [], isPublic, ca: [tls.cert], resolve: answering([standIn]) }
const sink = `https://sink.example.com:${port}/`
const outside = /outside the public internet/
const usual = {
  method: 'GET',
  deadlineMs: 2000,
  answerLimitBytes: 1000,
  ports: [...traps, 443],
} as const

afterEach(() => vi.unstubAllEnvs())
afterAll(closeServers)

/** Both clients must keep out of the same traps. */
const clients = [
  { kind: 'the operator', create: createEgress },
  { kind: 'tenants', create: createTenantEgress },
]

/** The address check stays the real one unless a vector needs the stand-in. */
function optionsFor({ turns = [['127.0.0.1']], privateTargets = [], outcome }: Vector) {
  const resolve = answering(...turns)
  if (typeof outcome === 'number') return { ...internet, resolve }
  const needsStandIn = turns.flat().includes(standIn)
  return { privateTargets, resolve, ...(needsStandIn && { isPublic }) }
}

test('there are at least 200 different vectors', () => {
  const different = new Set(vectors.map(({ name }) => name))
  expect(different.size).toBe(vectors.length)
  expect(different.size).toBeGreaterThanOrEqual(200)
})

describe.each(clients)('the client for $kind', ({ create }) => {
  test.each(vectors)('never reaches the trap: $name', async (vector) => {
    for (const [name, value] of Object.entries(vector.environment ?? {})) vi.stubEnv(name, value)
    await using egress = create(optionsFor(vector))
    const before = counts.trapped
    const result = await egress
      .request(vector.address, { ...usual, ...vector.call })
      .catch((error: unknown) => error)

    if (typeof vector.outcome === 'number') {
      expect(result).toMatchObject({ status: vector.outcome })
    } else {
      expect(result).toBeInstanceOf(EgressBlocked)
      expect(result).toMatchObject({ reason: expect.stringMatching(vector.outcome) })
    }
    expect(counts.trapped).toBe(before)
  })

  test.each([
    { name: 'public, then private', turns: [[standIn], ['127.0.0.1']], reached: [200, 0, 0, 0] },
    {
      name: 'private, then public',
      turns: [['127.0.0.1'], [standIn]],
      reached: [0, 200, 200, 200],
    },
    {
      name: 'now and then',
      turns: [[standIn], ['::1'], [standIn], ['10.0.0.1']],
      reached: [200, 0, 200, 0],
    },
  ])(
    'a resolver whose answers change ($name) never leads to the trap',
    async ({ turns, reached }) => {
      await using egress = create({ ...internet, resolve: answering(...turns) })
      const before = counts.trapped
      const statuses: number[] = []
      for (const _ of reached) {
        const result = await egress.request(sink, usual).catch((error: unknown) => error)
        if (!(result instanceof EgressBlocked)) expect(result).toHaveProperty('status')
        statuses.push(result instanceof EgressBlocked ? 0 : (result as { status: number }).status)
      }
      expect(statuses).toEqual(reached)
      expect(counts.trapped).toBe(before)
    },
  )
})

// --- The trap works: what has no guard does reach it. ---

async function reaches(agent: Dispatcher, address: string): Promise<boolean> {
  const before = counts.trapped
  const signal = AbortSignal.timeout(1000)
  const { origin, pathname, search } = new URL(address)
  const answer = await agent
    .request({ origin, path: pathname + search, method: 'GET', signal })
    .catch(() => undefined)
  await answer?.body.dump().catch(() => undefined)
  return counts.trapped > before
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
  const before = counts.answered
  await using strict = createEgress({ privateTargets: [], isPublic, resolve: answering([standIn]) })
  await expect(strict.request(sink, usual)).rejects.toThrow(/certificate .* not accepted/)
  await using egress = createEgress(internet)
  const otherName = sink.replace('example.com', 'example.net')
  await expect(egress.request(otherName, usual)).rejects.toThrow(/certificate .* not accepted/)
  expect(counts.answered).toBe(before)
})

test('the address of the socket is checked again: 0.0.0.0 may pass, 127.0.0.1 behind it may not', async () => {
  const before = counts.answered
  await using egress = createEgress({
    privateTargets: [],
    ca: [tls.cert],
    isPublic: (address) => address === '0.0.0.0',
    resolve: answering(['0.0.0.0']),
  })
  await expect(egress.request(sink, usual)).rejects.toThrow(outside)
  expect(counts.answered).toBe(before)
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
