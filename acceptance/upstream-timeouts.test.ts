import { type AddressInfo, createServer } from 'node:net'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import {
  ask,
  begin,
  foldedCall,
  type Format,
  formats,
  type RequestOptions,
} from './support/streams/call.ts'
import { expectBrokenStream, expectRefusal } from './support/streams/errors.ts'
import { catalogueOf, type UpstreamOptions } from './support/streams/models.ts'
import { resetUpstream, stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// Every phase of an upstream call has its deadline; what a caller receives depends on whether its answer has begun.

const upstream = await startScriptedUpstream()
afterAll(upstream.stop)

/** Accepts connections and never sends a byte: no TLS handshake completes. */
const mute = createServer((socket) => socket.on('error', () => undefined))
await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
afterAll(() => void mute.close())
const muteUrl = `https://127.0.0.1:${(mute.address() as AddressInfo).port}`

const limitMs = 400
/**
 * The time to fail, in multiples of a concurrent call whose upstream answers after `limitMs`. Timers of connections are
 * only checked at intervals, and connecting is attempted twice; the scripts wait 25 times as long.
 */
const ratioMax = 8.5

const deadlines = {
  connect: { url: muteUrl, connect_timeout_ms: limitMs },
  first: { url: upstream.url, first_byte_timeout_ms: limitMs },
  idle: { url: upstream.url, idle_timeout_ms: limitMs },
  total: { url: upstream.url, total_timeout_ms: limitMs },
} as const satisfies Record<string, UpstreamOptions>

const models = Object.fromEntries(
  Object.entries(deadlines).flatMap(([phase, options]) =>
    formats.map((format) => [`${phase}-${format}`, [{ ...options, format }]] as const),
  ),
)
const spare = await startScriptedUpstream()
afterAll(spare.stop)
const narrow = [{ ...deadlines.first, connections: 1 }, { url: spare.url }]
const patient = [{ url: spare.url }]
const shared = [deadlines.total, { url: spare.url, total_timeout_ms: limitMs }]
const stack = useStack({ models: () => catalogueOf({ ...models, narrow, patient, shared }) })

let tenant: Tenant | undefined
beforeAll(async () => {
  ;[tenant] = await createTenants(stack().service, 1)
})
beforeEach(() => resetUpstream(upstream.url))

const target = () => ({
  baseUrl: stack().description.base_url,
  credential: tenant?.project_key ?? '',
})
const send = (request: RequestOptions) => ask(target(), request)

/** How long a call takes whose upstream answers after `limitMs`. */
async function measureBaseline(): Promise<number> {
  const script = { headMs: limitMs }
  const { status, tookMs } = await send({ format: 'messages', model: 'patient', script })
  expect(status).toBe(200)
  return tookMs
}

const timeout = { status: 504, code: 'upstream_timeout', messagesType: 'timeout_error' }
const failure = { status: 502, code: 'upstream_error', messagesType: 'api_error' }

const early = [
  ['does not connect', 'connect', {}, failure],
  ['sends no head', 'first', { headMs: 10_000 }, timeout],
  ['sends a head and nothing else', 'idle', { firstMs: 10_000 }, timeout],
  ['sends no head before the total deadline', 'total', { headMs: 10_000 }, timeout],
] as const

test.each(early)(
  'an upstream that %s is a plain error by the deadline, streamed or not',
  async (_, phase, script, refusal) => {
    const check = async (format: Format, isStreamed: boolean) => {
      const body = isStreamed ? {} : foldedCall[format]
      const answer = await send({ format, model: `${phase}-${format}`, script, isStreamed, body })
      expectRefusal(answer, format, refusal)
      expect(answer.tookMs).toBeGreaterThan(limitMs * 0.9)
      return answer.tookMs
    }
    const checks = formats.flatMap((format) => [check(format, true), check(format, false)])
    const [baselineMs, ...tookMs] = await Promise.all([measureBaseline(), ...checks])
    expect(Math.max(...tookMs) / baselineMs).toBeLessThan(ratioMax)
  },
)

test('a plain answer has the total deadline alone', async () => {
  const answered = [
    ['first', { headMs: 2500 }],
    ['idle', { firstMs: 2500 }],
  ] as const
  const check = async (format: Format) => {
    for (const [phase, script] of answered) {
      const request = { format, model: `${phase}-${format}`, script, isStreamed: false }
      expect((await send(request)).status).toBe(200)
    }
    const total = { format, model: `total-${format}`, isStreamed: false }
    expectRefusal(await send({ ...total, script: { headMs: 10_000 } }), format, timeout)
    expectRefusal(await send({ ...total, script: { firstMs: 10_000 } }), format, timeout)
  }
  await Promise.all(formats.map(check))
})

const late = [
  ['falls silent', 'idle', { tokens: 50, paceMs: 20, stallAfter: { pieces: 5, ms: 10_000 } }],
  ['never finishes', 'total', { tokens: 500, paceMs: 20 }],
] as const

test.each(late)(
  'an upstream that %s in mid-stream ends in an error event, and its connection is closed',
  async (_, phase, script) => {
    const check = async (format: Format) => {
      const request = { format, model: `${phase}-${format}`, script }
      const [answer, plain] = await Promise.all([
        send(request),
        send({ ...request, isStreamed: false, body: foldedCall[format] }),
      ])
      expectBrokenStream(answer, format)
      expect(answer.text).toContain('did not answer in time')
      expectRefusal(plain, format, timeout)
      return answer.tookMs
    }
    const [baselineMs, ...tookMs] = await Promise.all([measureBaseline(), ...formats.map(check)])
    expect(Math.max(...tookMs) / baselineMs).toBeLessThan(ratioMax)
    const { open, hungUp } = await stateOf(upstream.url)
    expect([open, hungUp.length]).toEqual([0, 2 * formats.length])
  },
)

test('all attempts of a call share one deadline', async () => {
  const script = { headMs: 10_000 }
  const answer = await send({ format: 'messages', model: 'shared', script })
  expectRefusal(answer, 'messages', timeout)
  const models = (await stateOf(spare.url)).lastRequests.map(({ body }) => body?.['model'])
  expect(models).not.toContain('shared')
})

test('an upstream whose connections are all taken is skipped by the deadline', async () => {
  const request = { format: 'messages', model: 'narrow' } as const
  const running = begin(target(), { ...request, script: { tokens: 500, paceMs: 20 } })
  await running.responseStarted
  const [answer, baselineMs] = await Promise.all([send(request), measureBaseline()])
  running.hangUp()
  expect(answer.status).toBe(200)
  expect(answer.tookMs / baselineMs).toBeLessThan(ratioMax)
  const models = (await stateOf(spare.url)).lastRequests.map(({ body }) => body?.['model'])
  expect(models.filter((model) => model === 'narrow')).toHaveLength(1)
})
