import { sql } from 'kysely'
import { afterAll, expect, test } from 'vitest'

import { askGuardrail } from '#moderation/guardrails/ask-guardrail.ts'
import { createSendQuestion, guardrailPorts } from '#moderation/guardrails/send-question.ts'
import { createTenantEgress } from '#platform/egress.ts'
import { ssrfVectors } from '#platform/egress/testing/ssrf-vectors.ts'
import { answering, closeServers, openTraps } from '#platform/egress/testing/trap.ts'
import { createOriginPools } from '#platform/origin-pools.ts'
import { createTestApi } from '#testing/test-api.ts'

import { canary, guardrailCalls } from './testing/guardrail-calls.ts'

// Where guardrails may lead to: as it is checked when they are saved, and again when they are tested or asked.

afterAll(closeServers)

type Ports = Parameters<typeof ssrfVectors>[0]
const vectors = (ports: Ports) => ssrfVectors(ports).filter(({ call }) => call === undefined)

async function openApi(
  environment: Record<string, string> = {},
  resolved: () => Record<string, readonly string[]> = () => ({}),
) {
  const findAddresses = async (host: string) => {
    if (host === 'slow.example.com') throw new Error('queryA ETIMEOUT')
    return resolved()[host] ?? []
  }
  const api = await createTestApi({ environment, findAddresses })
  return { api, calls: guardrailCalls(api) }
}

test('422: no way around the guard can be saved, when created or when changed', async () => {
  const ways = vectors([8443, 9200, 9243])
  expect(ways.length).toBeGreaterThan(150)
  let found: string[] = []
  const api = await createTestApi({ findAddresses: async () => found })
  const calls = guardrailCalls(api)
  const { id } = (await calls.create({ name: 'Good' })).guardrail
  const saved = []
  for (const { name, address, turns = [] } of ways) {
    found = turns.at(-1) ?? []
    const answers = [
      await calls.create({ url: address }),
      await calls.edit(id, { url: address, secret: canary }),
    ]
    for (const { status, error } of answers) {
      if (status !== 422) saved.push([name, status])
      else expect([name, error.param]).toEqual([name, 'body.url'])
    }
  }
  expect(saved).toEqual([])
})

const resolved: Record<string, string[]> = {
  'public.example.com': ['93.184.216.34'],
  'loopback.example.com': ['127.0.0.1'],
  'mixed.example.com': ['93.184.216.34', '10.0.0.1'],
  'mapped.example.com': ['::ffff:10.0.0.1'],
  'listed.example.com': ['10.0.0.5'],
}

test('422: names that lead to private addresses; those that are not known are accepted', async () => {
  const { calls } = await openApi({}, () => resolved)
  const statusOf = async (host: string) => {
    const { status, error } = await calls.create({ name: host, url: `https://${host}` })
    return [host, status, error?.code, error?.param]
  }
  for (const host of Object.keys(resolved).filter((each) => each !== 'public.example.com')) {
    expect(await statusOf(host)).toEqual([host, 422, 'invalid_parameter', 'body.url'])
  }
  for (const host of ['public.example.com', 'missing.example.com', 'slow.example.com']) {
    expect(await statusOf(host)).toEqual([host, 201, undefined, undefined])
  }
})

test('what the operator lists may be private, and only at that port', async () => {
  const listed = 'listed.example.com:9443,10.0.0.9:8088,localhost:9000'
  const { calls } = await openApi({ EXPORT_PRIVATE_TARGETS: listed }, () => resolved)
  const statuses: [string, number][] = [
    ['https://listed.example.com:9443', 201],
    ['https://listed.example.com', 422],
    ['https://10.0.0.9:8088', 201],
    ['https://10.0.0.9', 422],
    ['http://localhost:9000', 201],
    ['https://127.0.0.1:9000', 422],
  ]
  for (const [url, status] of statuses) {
    expect([url, (await calls.create({ name: url, url })).status]).toEqual([url, status])
  }
})

test('addresses that the service itself may call are not open to guardrails', async () => {
  const { calls } = await openApi(
    { EGRESS_PRIVATE_TARGETS: 'listed.example.com:443' },
    () => resolved,
  )
  expect((await calls.create({ url: 'https://listed.example.com' })).status).toBe(422)
})

test('the ports are 443 and 8443', async () => {
  const { calls } = await openApi()
  const url = 'https://guard.example.com'
  expect((await calls.create({ url: `${url}:8443` })).status).toBe(201)
  for (const port of [80, 22, 8088, 9200, 65_535]) {
    const { status, error } = await calls.create({ name: 'B', url: `${url}:${port}` })
    expect([port, status, error.param]).toEqual([port, 422, 'body.url'])
  }
})

test('a test calls no private address, however its guardrail was saved', async () => {
  const { api, calls } = await openApi()
  const { counts, ports } = await openTraps()
  const { id } = (await calls.create()).guardrail
  for (const { name, address } of vectors(ports)) {
    if (address.includes('\0')) continue // the database has no such text
    await sql`update guardrail set url = ${address} where id = ${id}`.execute(api.db)
    const { status, result } = await calls.ask(id)
    expect([name, status, result.ok]).toEqual([name, 200, false])
    expect(result.error).not.toContain('127.0.0.1')
  }
  expect(counts).toEqual({ trapped: 0, answered: 0 })
}, 120_000)

const question = {
  id: 'grq_1',
  direction: 'request',
  organizationId: 'org_1',
  projectId: 'proj_1',
  requestId: 'req_1',
  model: 'm',
  isLast: true,
  texts: [{ role: 'user', text: 'a' }],
} as const

test('no way around the guard is called, however it was saved and whatever the name leads to', async () => {
  const { ports, counts } = await openTraps()
  const pools = createOriginPools()
  const decided = []
  for (const { name, address, turns = [['127.0.0.1']], privateTargets = [] } of vectors(ports)) {
    const egress = createTenantEgress({ privateTargets, resolve: answering(...turns) })
    await using _ = egress
    const onTraps: typeof egress.request = (to, call) => {
      expect(call.ports).toEqual(guardrailPorts)
      return egress.request(to, { ...call, ports })
    }
    const send = createSendQuestion({ pools, egress: { request: onTraps } })
    const guardrail = {
      id: 'grd_1',
      name: 'House',
      mode: 'enforcing',
      onError: 'allow',
      deadlineMs: 2000,
      url: address,
      secret: canary,
    } as const
    const deps = { send, now: () => new Date() }
    const outcome = await askGuardrail(deps, guardrail, question, new AbortController().signal)
    if (outcome.kind !== 'failed') decided.push(name)
  }
  await pools.close()
  expect(decided).toEqual([])
  expect(counts).toEqual({ trapped: 0, answered: 0 })
}, 120_000)
