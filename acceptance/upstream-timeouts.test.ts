import { type AddressInfo, createServer } from 'node:net'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'

import { ask, begin, type Format, formats, type Wish } from './support/stream-call.ts'
import { expectBrokenStream, expectRefusal } from './support/stream-errors.ts'
import { catalogueOf, type UpstreamWish } from './support/stream-models.ts'
import { resetUpstream, stateOf } from './support/stream-upstream.ts'
import { useStack } from './support/use-stack.ts'

// Every phase of an upstream call has its deadline; what a caller hears depends on whether its answer has begun.

const upstream = await startScriptedUpstream()
afterAll(upstream.stop)

/** Takes connections and never says a word: no handshake comes to its end. */
const mute = createServer((socket) => socket.on('error', () => undefined))
await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve))
afterAll(() => void mute.close())
const muteUrl = `https://127.0.0.1:${(mute.address() as AddressInfo).port}`

const limitMs = 400
/** Timers of connections are checked now and then; an attempt to connect is made twice. */
const lateMaxMs = 3000

const deadlines = {
  connect: { url: muteUrl, connect_timeout_ms: limitMs },
  first: { url: upstream.url, first_byte_timeout_ms: limitMs },
  idle: { url: upstream.url, idle_timeout_ms: limitMs },
  total: { url: upstream.url, total_timeout_ms: limitMs },
} as const satisfies Record<string, UpstreamWish>

const models = Object.fromEntries(
  Object.entries(deadlines).flatMap(([phase, wish]) =>
    formats.map((format) => [`${phase}-${format}`, [{ ...wish, format }]] as const),
  ),
)
const spare = await startScriptedUpstream()
afterAll(spare.stop)
const narrow = [{ ...deadlines.first, connections: 1 }, { url: spare.url }]
const stack = useStack({ models: () => catalogueOf({ ...models, narrow }) })

let tenant: Tenant | undefined
beforeAll(async () => {
  ;[tenant] = await createTenants(stack().service, 1)
})
beforeEach(() => resetUpstream(upstream.url))

const target = () => ({
  ...{ baseUrl: stack().description.base_url, credential: tenant?.project_key ?? '' },
})
const send = (wish: Wish) => ask(target(), wish)

const timeout = { status: 504, code: 'upstream_timeout', messagesType: 'timeout_error' }
const failure = { status: 502, code: 'upstream_error', messagesType: 'api_error' }

const early = [
  ['does not connect', 'connect', {}, failure],
  ['sends no head', 'first', { headMs: 10_000 }, timeout],
  ['sends a head and nothing else', 'idle', { firstMs: 10_000 }, timeout],
  ['is not done in time, before its head', 'total', { headMs: 10_000 }, timeout],
] as const

test.each(early)(
  'an upstream that %s is a plain error in time, streamed or not',
  async (_, phase, script, told) => {
    const check = async (format: Format, isStreamed: boolean) => {
      const heard = await send({ format, model: `${phase}-${format}`, script, isStreamed })
      expectRefusal(heard, format, told)
      expect(heard.tookMs).toBeGreaterThan(limitMs * 0.9)
      expect(heard.tookMs).toBeLessThan(limitMs + lateMaxMs)
    }
    await Promise.all(formats.flatMap((format) => [check(format, true), check(format, false)]))
  },
)

const late = [
  ['falls silent', 'idle', { tokens: 50, paceMs: 20, stallAfter: { pieces: 5, ms: 10_000 } }],
  ['never comes to its end', 'total', { tokens: 500, paceMs: 20 }],
] as const

test.each(late)(
  'an upstream that %s in mid-stream ends in an error event, and is let go',
  async (_, phase, script) => {
    const check = async (format: Format) => {
      const wish = { format, model: `${phase}-${format}`, script }
      const [heard, plain] = await Promise.all([send(wish), send({ ...wish, isStreamed: false })])
      expectBrokenStream(heard, format)
      expect(heard.text).toContain('did not answer in time')
      expect(heard.tookMs).toBeLessThan(limitMs + lateMaxMs)
      expectRefusal(plain, format, timeout)
    }
    await Promise.all(formats.map(check))
    const { open, hungUp } = await stateOf(upstream.url)
    expect([open, hungUp.length]).toEqual([0, 2 * formats.length])
  },
)

test('an upstream whose connections are all taken is passed over in time', async () => {
  const wish = { format: 'messages', model: 'narrow' } as const
  const running = begin(target(), { ...wish, script: { tokens: 500, paceMs: 20 } })
  await running.answered
  const heard = await send(wish)
  running.hangUp()
  expect(heard.status).toBe(200)
  expect(heard.tookMs).toBeLessThan(limitMs + lateMaxMs)
  expect((await stateOf(spare.url)).requests).toBe(1)
})
