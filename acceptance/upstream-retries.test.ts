import { setTimeout as sleep } from 'node:timers/promises'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { ask, type Format, formats, type RequestOptions } from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import { failAlways, resetUpstream, stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// Which failures of an upstream are retried without the caller noticing, and how often a failing upstream is called.

const [first, second] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()])
afterAll(() => Promise.all([first.stop(), second.stop()]))
/** Nothing listens at its address. */
const absent = await startScriptedUpstream()
await absent.stop()

const fallbackStatuses = [429, 401, 402, 403, 404, 500, 529] as const
const pair = [{ url: first.url }, { url: second.url }]
const stack = useStack({
  models: () =>
    catalogueOf({
      'by-messages': [{ url: first.url, format: 'messages' }],
      'by-chat': [{ url: first.url, format: 'chat' }],
      'by-responses': [{ url: first.url, format: 'responses' }],
      ...Object.fromEntries(fallbackStatuses.map((status) => [`after-${status}`, pair])),
      'after-absent': [{ url: absent.url }, { url: second.url }],
      'only-absent': [{ url: absent.url }],
      begun: pair,
      budget: [{ url: first.url }],
      working: [{ url: second.url }],
      shared: [{ url: second.url }],
      'broken-pair': pair,
      'broken-messages': [{ url: first.url }],
      'broken-chat': [{ url: first.url }],
      'broken-responses': [{ url: first.url }],
    }),
})

let tenants: Tenant[] = []
beforeAll(async () => {
  tenants = await createTenants(stack().service, 2)
})
beforeEach(async () => {
  await Promise.all([resetUpstream(first.url), resetUpstream(second.url)])
})

const send = (request: RequestOptions, tenant = 0) => {
  const { base_url: baseUrl } = stack().description
  return ask({ baseUrl, credential: tenants[tenant]?.project_key ?? '' }, request)
}
const calls = async () => [
  (await stateOf(first.url)).requests,
  (await stateOf(second.url)).requests,
]

describe.each(formats)('%s', (format) => {
  const model = `by-${format}`

  test.each([true, false])(
    'a 503 and then a success is answered 200 after exactly two calls (streamed: %s)',
    async (isStreamed) => {
      const script = { repeatTimes: { n: 1 }, key: `${format}-${isStreamed}` }
      const answer = await send({ format, model, script, isStreamed })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Hello')])
      expect(await calls()).toEqual([2, 0])
    },
  )

  test.each([400, 413, 422])('a %i is not retried and keeps its message', async (status) => {
    const script = { error: { status, message: 'The prompt is too hot.' } }
    const answer = await send({ format, model, script })
    expect(await calls()).toEqual([1, 0])
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(answer.text).toContain('The prompt is too hot.')
    expect(answer.status).toBe(status)
  })
})

test.each(fallbackStatuses)('a %i falls back to the next upstream', async (status) => {
  await failAlways(first.url, { status })
  const answer = await send({ format: 'messages', model: `after-${status}` })
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Hello')])
  // Only a failure that may be temporary is retried at the same upstream.
  expect(await calls()).toEqual([status < 500 ? 1 : 2, 1])
})

test('a refused connection falls back to the next upstream, and is a 502 where there is none', async () => {
  expect((await send({ format: 'messages', model: 'after-absent' })).status).toBe(200)
  expect(await calls()).toEqual([0, 1])
  const alone = await send({ format: 'messages', model: 'only-absent' })
  expect([alone.status, JSON.parse(alone.text)]).toEqual([
    502,
    expect.objectContaining({ error: expect.objectContaining({ type: 'api_error' }) as unknown }),
  ])
})

test('once the answer has begun, nothing is retried', async () => {
  const script = { tokens: 20, paceMs: 10, closeAfter: { pieces: 3 } }
  const request = { format: 'messages', model: 'begun', script } as const
  const [streamed, plain] = [await send(request), await send({ ...request, isStreamed: false })]
  expect([streamed.status, streamed.text]).toEqual([200, expect.stringContaining('event: error')])
  expect(plain.status).toBe(502)
  expect(await calls()).toEqual([2, 0])
})

test('when every second call fails, retries are limited to a tenth of the calls plus ten', async () => {
  const script = { error: { status: 500 } }
  const total = 300
  for (let sent = 0; sent < total; sent += 2) {
    const request = { format: 'messages', model: 'budget' } as const
    const statuses = [(await send({ ...request, script })).status, (await send(request)).status]
    expect(statuses).toEqual([502, 200])
  }
  const [made = 0] = await calls()
  expect(made - total).toBeGreaterThanOrEqual(30)
  expect(made - total).toBeLessThanOrEqual(total / 10 + 10)
})

const breakAfter = 5
const pauseMs = 5000

async function breakUpstream(format: Format, model: string) {
  await failAlways(first.url, { status: 500 })
  for (let sent = 0; sent < 3; sent++) {
    expect((await send({ format, model }, 1)).status).toBe(502)
  }
  expect(await calls()).toEqual([breakAfter, 0])
}

test.each(formats)(
  '%s: after five consecutive failures calls are refused at once',
  async (format) => {
    const model = `broken-${format}`
    await breakUpstream(format, model)
    // Compared with calls that reach an upstream at the same time: a refusal waits for nothing.
    const [answer, ...served] = await Promise.all([
      send({ format, model }, 1),
      ...[1, 2, 3].map(() => send({ format, model: 'working' })),
    ])
    const slowestMs = Math.max(...served.map(({ tookMs }) => tookMs))
    console.log(`refused in ${Math.round(answer.tookMs)} ms, served in ${Math.round(slowestMs)} ms`)
    expect(answer.tookMs / slowestMs).toBeLessThan(3)
    expect(answer.status).toBe(format === 'messages' ? 529 : 503)
    expect(Number(answer.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(await calls()).toEqual([breakAfter, served.length])
  },
)

test('an organization whose requests make an upstream fail is refused; the others are served', async () => {
  const request = { format: 'messages', model: 'shared' } as const
  for (let sent = 0; sent < 4; sent++)
    await send({ ...request, script: { error: { status: 500 } } })
  expect((await send(request)).status).toBe(529)
  for (let sent = 0; sent < 5; sent++) expect((await send(request, 1)).status).toBe(200)
})

test('a broken upstream is skipped while there is another, tried by one call when its pause ends, and used again when it works', async () => {
  await failAlways(first.url, { status: 500 })
  const request = { format: 'messages', model: 'broken-pair' } as const
  for (let sent = 0; sent < 3; sent++) expect((await send(request, 1)).status).toBe(200)
  const brokenAt = performance.now()
  expect(await calls()).toEqual([breakAfter, 3])
  for (let sent = 0; sent < 10; sent++) expect((await send(request, 1)).status).toBe(200)
  expect(await calls()).toEqual([breakAfter, 13])
  await resetUpstream(first.url)
  await sleep(brokenAt + pauseMs + 100 - performance.now())
  // One of many concurrent calls tries it; the others do not wait for the result.
  const slow = { ...request, script: { headMs: 500 } }
  const many = await Promise.all(Array.from({ length: 10 }, () => send(slow, 1)))
  expect(many.map(({ status }) => status)).toEqual(many.map(() => 200))
  expect(await calls()).toEqual([1, 22])
  for (let sent = 0; sent < 5; sent++) expect((await send(request, 1)).status).toBe(200)
  expect(await calls()).toEqual([6, 22])
})
