import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { readLimits } from '@gatehouse/contract/limits'
import { expect, test, vi } from 'vitest'

import {
  completion,
  outcomesOf,
  type PlainCalls,
  preparePlainCalls,
  priceOfUsage,
  sendPlain,
  sendStream,
} from '#testing/plain-calls.ts'

// A caller who hangs up does not stop a plain call: its upstream goes on, so its slot and its hold stay, and what it
// has used is charged.

const eventually = { timeout: 20_000, interval: 10 }

/** An upstream that answers when the test says so. */
function answerLater({ upstream }: PlainCalls) {
  const { promise, resolve } = Promise.withResolvers<ServerResponse>()
  upstream.behave = resolve
  return promise
}

async function slotsUsed({ send }: PlainCalls): Promise<number> {
  const { body } = await send(readLimits)
  const { organization } = body as unknown as {
    organization: { concurrent_requests: { used: number } }
  }
  return organization.concurrent_requests.used
}

const untilSettled = (calls: PlainCalls) =>
  vi.waitUntil(async () => (await outcomesOf(calls)).outcomes.length > 0, eventually)

test('the call goes on with its slot and its hold, and is charged what the upstream reports', async () => {
  const calls = await preparePlainCalls()
  const waiting = answerLater(calls)
  await calls.hangUp()
  const response = await waiting
  await sleep(200)
  expect(calls.upstream.open).toBe(1)
  expect(await slotsUsed(calls)).toBe(1)
  const before = await outcomesOf(calls)
  expect(before).toMatchObject({ charged: [], outcomes: [] })
  expect(before.held).toBeGreaterThan(1000)
  sendPlain(response, completion('Nobody reads this.'))
  await untilSettled(calls)
  expect(await outcomesOf(calls)).toEqual({ charged: [priceOfUsage], outcomes: ['cut'], held: 0 })
  await expect.poll(() => slotsUsed(calls), eventually).toBe(0)
})

test('an upstream that streams although it should not is read to its end', async () => {
  const calls = await preparePlainCalls()
  const waiting = answerLater(calls)
  await calls.hangUp()
  sendStream(await waiting, 'Nobody reads this.')
  await untilSettled(calls)
  expect(await outcomesOf(calls)).toEqual({ charged: [priceOfUsage], outcomes: ['cut'], held: 0 })
})

test.each([{ max_tokens: 9000 }, { model: 'streams' }])(
  'a plain call that is streamed from its upstream, %j, is stopped',
  async (body) => {
    const calls = await preparePlainCalls()
    await calls.hangUp(body)
    await vi.waitUntil(() => calls.upstream.open === 0, eventually)
    await untilSettled(calls)
    expect(await outcomesOf(calls)).toEqual({ charged: [0], outcomes: ['cut'], held: 0 })
  },
)

test('an upstream that fails then is not asked again, and nothing is charged', async () => {
  const calls = await preparePlainCalls()
  const waiting = answerLater(calls)
  await calls.hangUp({ model: 'two' })
  ;(await waiting).writeHead(503).end('{}')
  await untilSettled(calls)
  await sleep(300)
  expect(calls.upstream.bodies).toHaveLength(1)
  expect(await outcomesOf(calls)).toEqual({ charged: [0], outcomes: ['cut'], held: 0 })
})

test('an upstream that refuses and then stalls costs nothing', async () => {
  const calls = await preparePlainCalls({ settings: { total_timeout_ms: 1000 } })
  const waiting = answerLater(calls)
  await calls.hangUp()
  ;(await waiting).writeHead(429, { 'content-type': 'application/json' }).write('{')
  await untilSettled(calls)
  expect(await outcomesOf(calls)).toEqual({ charged: [0], outcomes: ['cut'], held: 0 })
})

test('the rest of a refusal may take as long as a pause, and not as long as a plain answer', async () => {
  const calls = await preparePlainCalls({ settings: { idle_timeout_ms: 300 } })
  const waiting = answerLater(calls)
  const startedAtMs = performance.now()
  const { answer } = calls.begin()
  ;(await waiting).writeHead(400, { 'content-type': 'application/json' }).write('{')
  const { status } = await answer
  expect(status).toBeGreaterThanOrEqual(400)
  expect(performance.now() - startedAtMs).toBeLessThan(10_000)
})

/** The input is estimated, and the output by the time: 50 tokens a second until more is known. */
async function expectTimeCharged(calls: PlainCalls, seconds: number) {
  await untilSettled(calls)
  const { charged, outcomes, held } = await outcomesOf(calls)
  expect([outcomes, held]).toEqual([['cut'], 0])
  expect(charged[0]).toBeGreaterThanOrEqual(50 * seconds)
  expect(charged[0]).toBeLessThanOrEqual(1100)
}

test('what a process cuts when it ends is charged by its time', async () => {
  const calls = await preparePlainCalls()
  await calls.hangUp()
  await sleep(1000)
  const ended = calls.house.inference.openCalls.ended(20_000)
  calls.house.inference.endCalls()
  await ended
  await expectTimeCharged(calls, 1)
  await vi.waitUntil(() => calls.upstream.open === 0, eventually)
})

test('what takes longer than the whole time is charged by its time', async () => {
  const calls = await preparePlainCalls({ settings: { total_timeout_ms: 1000 } })
  await calls.hangUp()
  await expectTimeCharged(calls, 1)
  expect(calls.upstream.bodies).toHaveLength(1)
})

test('of a model that does not reason, only the input of a call that is cut is charged', async () => {
  const calls = await preparePlainCalls({ settings: { total_timeout_ms: 300 } })
  await calls.hangUp({ model: 'silent' })
  await untilSettled(calls)
  const { charged, outcomes } = await outcomesOf(calls)
  expect(outcomes).toEqual(['cut'])
  expect(charged[0]).toBeGreaterThan(0)
  expect(charged[0]).toBeLessThan(20)
})

test('a caller who still waits when the process ends is told so, and pays nothing', async () => {
  const calls = await preparePlainCalls()
  const { answer } = calls.begin()
  await vi.waitUntil(() => calls.upstream.open === 1, eventually)
  calls.house.inference.endCalls()
  expect(await answer).toMatchObject({ status: 503 })
  expect(await outcomesOf(calls)).toEqual({ charged: [0], outcomes: ['failed'], held: 0 })
})
