import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { beforeAll, expect, test } from 'vitest'

import { type Books, countHolds, readBooks, watchBalances } from './support/credits/books.ts'
import { createRandom, creditsPerToken } from './support/credits/calls.ts'
import { billsOf } from './support/credits/comparison.ts'
import { countSlots } from './support/limited-call.ts'
import { begin, formats, type RunningCall } from './support/streams/call.ts'
import { stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// 1,500 callers hang up at any moment of their call, whatever the upstream does meanwhile. Nothing of them stays behind,
// and their money adds up. HANG_UP_SEED plans the same calls again.

const hangUps = 1500
const atOnce = 30
const hangUpMaxMs = 150
const seed = Number(process.env['HANG_UP_SEED'] ?? Date.now() % 2 ** 31)
const random = createRandom(seed)
const oneOf = <T>(list: readonly T[]): T => list[random(list.length)]!

const stack = useStack({ processes: 2 })

const scripts: readonly Script[] = [
  { tokens: 30, paceMs: 2 },
  { tokens: 5, headMs: 20 },
  { tokens: 5, firstMs: 20 },
  { tokens: 10, closeAfter: { pieces: 4 } },
  { tokens: 10, malformedAfter: { pieces: 3 } },
  { tokens: 10, errorAfter: { pieces: 2 } },
  { error: { status: 400 } },
  { tokens: 20, splitBytes: 7 },
  { hugeFrameBytes: 70_000 },
  { tokens: 8, noDone: true },
  { toolCalls: [{ name: 'f', arguments: { a: 1 } }] },
  { thinking: 'Hm.', tokens: 5 },
]
const models = ['claude-scripted', 'chat-scripted', 'responses-scripted']

let tenants: Tenant[]
let books: Books
let watched: { checks: number; found: object[] }
let begun = 0

/** When a caller hangs up; by the clock alone, a busy machine would get no further than the head of the request. */
const moments: readonly ((call: RunningCall) => Promise<unknown>)[] = [
  () => sleep(random(hangUpMaxMs)),
  ({ responseStarted }) => responseStarted,
  async ({ responseStarted }) => once(await responseStarted, 'data'),
  async ({ responseStarted }) => responseStarted.then(() => sleep(random(20))),
]

async function hangUpOnce() {
  const { base_urls } = stack().description
  const target = {
    baseUrl: oneOf(base_urls),
    credential: tenants[begun++ % tenants.length]!.project_key,
  }
  const running = begin(target, {
    format: oneOf(formats),
    model: oneOf(models),
    script: oneOf(scripts),
    isStreamed: random(10) < 6,
  })
  const { call, answer, hangUp } = running
  const ended = answer.catch(() => undefined)
  await Promise.race([oneOf(moments)(running).catch(() => undefined), ended])
  // With a reset, or with a proper end of the connection.
  if (random(2) === 0) call.socket?.resetAndDestroy()
  hangUp()
  await ended
}

/** Far below the 11 minutes after which a hold expires, and the minute after which a slot does. */
const eventually = { timeout: 30_000, interval: 100 }

let connectionsBefore: number[]
const connections = () =>
  Promise.all(stack().description.base_urls.map((url) => countConnections(new URL(url).port)))

beforeAll(async () => {
  console.log(`seed ${seed}`)
  tenants = await createTenants(stack().service, 20)
  // The helpers of the tests keep connections of their own.
  connectionsBefore = await connections()
  const watching = watchBalances(stack().database.url)
  const caller = async () => {
    while (begun < hangUps) await hangUpOnce()
  }
  await Promise.all(Array.from({ length: atOnce }, caller))
  await untilQuiet()
  watched = await watching.stop()
  books = await readBooks(stack().database.url)
})

/** A call whose caller is gone may still wait for its turn: until nothing has been booked for a while. */
async function untilQuiet() {
  const readNow = async () => (await readBooks(stack().database.url)).ledger.length
  for (let before = -1, now = await readNow(); now !== before; now = await readNow()) {
    before = now
    await sleep(1000)
  }
}

test('no hold is left, no slot is in use', async () => {
  await expect.poll(() => countHolds(stack().database.url), eventually).toBe(0)
  const slots = async () => {
    const counts = tenants.map((tenant) => countSlots(stack(), tenant.organization_id))
    return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
  }
  await expect.poll(slots, eventually).toBe(0)
})

test('no request, stream or connection is open, here or to the upstream', async () => {
  const openOf = async (metricsUrl: string) => {
    const metrics = await (await fetch(metricsUrl)).text()
    return ['requests_in_flight', 'streams_open'].map((name) =>
      Number(new RegExp(`^gatehouse_${name} (\\d+)$`, 'm').exec(metrics)?.[1]),
    )
  }
  for (const url of stack().description.metrics_urls) {
    await expect.poll(() => openOf(url), eventually).toEqual([0, 0])
  }
  const more = async () =>
    (await connections()).map((now, index) => now > connectionsBefore[index]!)
  await expect.poll(more, eventually).toEqual([false, false])
  expect((await stateOf(stack().description.upstream_url)).open).toBe(0)
})

/** Connections that this machine has accepted at a port; those that only wait for late packets do not count. */
async function countConnections(port: string): Promise<number> {
  const [listening, waiting] = ['0A', '06']
  const local = `:${Number(port).toString(16).toUpperCase().padStart(4, '0')}`
  const rows = (await readFile('/proc/net/tcp', 'utf8')).split('\n').slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, address = '', , state = '']) => {
      return address.endsWith(local) && state !== listening && state !== waiting
    }).length
}

test('every call that was held has one entry, one event and the price of its tokens', () => {
  const bills = billsOf(books.ledger)
  expect(
    bills.filter(
      ({ usage, late, unknown }) => usage.length !== 1 || late.length + unknown.length > 0,
    ),
  ).toEqual([])
  const calls = bills.map(({ usage: [entry], writtenOff }) => ({ ...entry!, writtenOff }))
  const charged = calls.filter(({ amount }) => amount > 0)
  console.log(`${begun} hang-ups, ${calls.length} calls were held, ${charged.length} charged`)
  expect(charged.length).toBeGreaterThan(hangUps / 10)
  const { input, output } = creditsPerToken
  const wrong = calls.filter(
    ({ amount, writtenOff, inputTokens, outputTokens }) =>
      amount + writtenOff !== (inputTokens ?? 0) * input + (outputTokens ?? 0) * output,
  )
  expect(wrong).toEqual([])
  const { refused = [], ended = [] } = Object.groupBy(books.events, ({ outcome }) =>
    outcome === 'refused' ? 'refused' : 'ended',
  )
  const idsOf = (events: Books['events']) => events.map(({ requestId }) => requestId).toSorted()
  expect(idsOf(ended)).toEqual(calls.map(({ id }) => id).toSorted())
  // Those who hung up while they sent their body.
  expect(new Set(idsOf(refused)).size).toBe(refused.length)
  const endedIds = new Set(idsOf(ended))
  expect(idsOf(refused).filter((id) => endedIds.has(id))).toEqual([])
})

test('at every moment the balances agreed with the holds and the ledger', () => {
  expect(watched.checks).toBeGreaterThan(5)
  expect(watched.found).toEqual([])
})

test('afterwards calls are served as before', async () => {
  const { base_urls } = stack().description
  for (const baseUrl of base_urls) {
    for (const format of formats) {
      const target = { baseUrl, credential: tenants[0]!.project_key }
      const { status } = await begin(target, { format, model: 'gpt-scripted' }).answer
      expect(status).toBe(200)
    }
  }
})
