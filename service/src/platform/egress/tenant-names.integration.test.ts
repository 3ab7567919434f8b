import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:https'

import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { afterAll, expect, test } from 'vitest'

import { EgressBlocked } from '#platform/egress-target.ts'
import { createEgress, createTenantEgress } from '#platform/egress.ts'

import { createTenantResolver } from './find-addresses.ts'
import { type Answer, startNameServer } from './testing/name-server.ts'
import {
  answering,
  closeServers,
  isPublic,
  listen,
  makeCertificate,
  standIn,
} from './testing/trap.ts'

// How the client for tenants finds addresses, with name servers on a real socket.

const tls = makeCertificate()
const port = await listen(
  createServer(tls, (_, response) => response.end('hello')),
  standIn,
)
const usual = { method: 'GET', deadlineMs: 5000, answerLimitBytes: 1000, ports: [port] } as const
const addressOf = (name: string) => `https://${name}.example.com:${port}/`
const here = Buffer.from(standIn.split('.').map(Number))
const bytes = (address: string) => Buffer.from(address.split('.').map(Number))

afterAll(closeServers)

/** A client whose name server has these answers; it never answers for other names. */
async function startClient(answers: Record<string, { a: Answer; aaaa: Answer }>, deadlineMs = 500) {
  const server = await startNameServer(({ name, isV4 }) => {
    const answer = answers[name.replace('.example.com', '')]
    return isV4 ? answer?.a : answer?.aaaa
  })
  const resolve = createTenantResolver({ resolver: server.resolver, deadlineMs })
  const egress = createTenantEgress({ privateTargets: [], isPublic, ca: [tls.cert], resolve })
  return {
    asked: server.asked,
    egress,
    resolve,
    async [Symbol.asyncDispose]() {
      await egress.close()
      server[Symbol.dispose]()
    },
  }
}

test('a name server that never answers fails the call within the deadline of the resolver', async () => {
  await using client = await startClient({})
  const ratio = await waitingRatio('the resolver', 500, async () => {
    const late = client.egress.request(addressOf('slow'), usual)
    await expect(late).rejects.toThrow('The host name could not be resolved in time.')
  })
  expect(ratio).toBeLessThan(4)
})

test('a name server that never answers delays no other name', async () => {
  await using client = await startClient({ quick: { a: [here], aaaa: [] } }, 3000)
  let failed = 0
  const slow = Array.from({ length: 40 }, (_, index) =>
    client.egress.request(addressOf(`slow-${index}`), usual).catch(() => (failed += 1)),
  )
  const answer = await client.egress.request(addressOf('quick'), usual)
  expect(answer.status).toBe(200)
  expect(failed).toBe(0) // they still wait
  await Promise.all(slow)
  expect(failed).toBe(40)
})

test('however often a slow name is called, it is asked for once', async () => {
  await using client = await startClient({}, 50)
  for (let round = 0; round < 4; round++) {
    const calls = Array.from({ length: 25 }, () => client.resolve('slow.example.com'))
    const results = await Promise.allSettled(calls)
    expect(results.every(({ status }) => status === 'rejected')).toBe(true)
  }
  expect(client.asked).toHaveLength(2)
  expect(new Set(client.asked.map(({ isV4 }) => isV4)).size).toBe(2)
})

test('a name is asked for again when its lookup has ended', async () => {
  await using client = await startClient({ quick: { a: [here], aaaa: [] } })
  await client.resolve('quick.example.com')
  await client.resolve('quick.example.com')
  expect(client.asked).toHaveLength(4)
})

const loopback6 = Buffer.from([...Array<number>(15).fill(0), 1])
const many = (count: number) => Array.from({ length: count }, () => here)

test.each([
  { name: 'a private address among public ones', a: [here, bytes('10.0.0.1')], aaaa: [] },
  { name: 'a private address of the other family', a: [here], aaaa: [loopback6] },
  { name: 'a private address only', a: [bytes('169.254.169.254')], aaaa: [] },
  { name: 'a private address after many', a: [...many(40), bytes('127.0.0.1')], aaaa: [] },
])('$name refuses the call', async ({ a, aaaa }) => {
  await using client = await startClient({ sink: { a, aaaa } })
  await expect(client.egress.request(addressOf('sink'), usual)).rejects.toThrow(
    /outside the public internet/,
  )
})

test.each([
  { name: 'no AAAA record', a: [here], aaaa: [] },
  { name: 'a name server that fails for AAAA', a: [here], aaaa: 'failed' },
  { name: 'more addresses than are tried', a: many(40), aaaa: [] },
] as const)('$name does not prevent the call', async ({ a, aaaa }) => {
  await using client = await startClient({ sink: { a, aaaa } })
  expect((await client.egress.request(addressOf('sink'), usual)).status).toBe(200)
})

test.each([
  { name: 'a name that does not exist', a: 'missing', aaaa: 'missing' },
  { name: 'a name without addresses', a: [], aaaa: [] },
  { name: 'a name server that fails', a: 'failed', aaaa: 'failed' },
] as const)('$name is one plain sentence', async ({ a, aaaa }) => {
  await using client = await startClient({ sink: { a, aaaa } })
  const call = client.egress.request(addressOf('sink'), usual)
  await expect(call).rejects.toThrow(/^The host name could not be resolved\.$/)
})

test('a listed private target is found in the hosts file, and no name server is asked for it', async () => {
  const localPort = await listen(createHttpServer((_, response) => response.end('local')))
  let asked = 0
  const resolve = async () => {
    asked += 1
    return []
  }
  await using egress = createTenantEgress({ privateTargets: [`localhost:${localPort}`], resolve })
  const answer = await egress.request(`http://localhost:${localPort}/`, usual)
  expect(answer.body.toString()).toBe('local')
  expect(asked).toBe(0)
})

test('what the operator has listed for its own addresses stays closed to tenants', async () => {
  let received = 0
  const localPort = await listen(
    createHttpServer((_, response) => {
      received += 1
      response.end('local')
    }),
  )
  const addresses = [`http://127.0.0.1:${localPort}/`, `http://localhost:${localPort}/`]
  const listed = addresses.map((address) => new URL(address).host)
  const resolve = answering(['127.0.0.1'])
  await using operator = createEgress({ privateTargets: listed, resolve })
  await using tenants = createTenantEgress({ privateTargets: [], resolve })
  for (const address of addresses) {
    // The operator's connection is open when the tenant calls.
    expect((await operator.request(address, usual)).status).toBe(200)
    for (const ports of [undefined, [localPort], [80, localPort]]) {
      const call = { ...usual, ...(ports && { ports }) }
      await expect(tenants.request(address, call)).rejects.toBeInstanceOf(EgressBlocked)
      const overTls = address.replace('http:', 'https:')
      await expect(tenants.request(overTls, call)).rejects.toBeInstanceOf(EgressBlocked)
    }
  }
  expect(received).toBe(addresses.length)
})

test.each([443, 8088, 9200, 9243])(
  'tenants may call port %i if the call names it, and 443 if it names none',
  async (number) => {
    await using egress = createTenantEgress({
      privateTargets: [],
      resolve: answering(['10.0.0.1']),
    })
    const call = { method: 'GET', deadlineMs: 2000, answerLimitBytes: 1000 } as const
    const address = `https://sink.example.com:${number}/`
    // The address is refused, so the port was not.
    const outside = /outside the public internet/
    await expect(egress.request(address, { ...call, ports: [number] })).rejects.toThrow(outside)
    await expect(egress.request(address, { ...call, ports: [1] })).rejects.toThrow(
      'The port is not one of 1; the operator can allow another one in EXPORT_PRIVATE_TARGETS.',
    )
    await expect(egress.request(address, call)).rejects.toThrow(
      number === 443 ? outside : /not one of 443;/,
    )
  },
)
