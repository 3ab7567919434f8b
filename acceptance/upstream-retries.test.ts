import { setTimeout as sleep } from 'node:timers/promises'

import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { createTenants, type Tenant } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { ask, type Format, formats, type Wish } from './support/stream-call.ts'
import { catalogueOf } from './support/stream-models.ts'
import { failAlways, resetUpstream, stateOf } from './support/stream-upstream.ts'
import { useStack } from './support/use-stack.ts'

// Which failures of an upstream a caller never hears of, and how often an upstream that fails is asked.

const [first, second] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()])
afterAll(() => Promise.all([first.stop(), second.stop()]))
/** Nobody listens there. */
const nobody = await startScriptedUpstream()
await nobody.stop()

const fallbackStatuses = [429, 401, 402, 403, 404, 500, 529] as const
const pair = [{ url: first.url }, { url: second.url }]
const stack = useStack({
  models: () =>
    catalogueOf({
      'by-messages': [{ url: first.url, format: 'messages' }],
      'by-chat': [{ url: first.url, format: 'chat' }],
      'by-responses': [{ url: first.url, format: 'responses' }],
      ...Object.fromEntries(fallbackStatuses.map((status) => [`after-${status}`, pair])),
      'after-nobody': [{ url: nobody.url }, { url: second.url }],
      'only-nobody': [{ url: nobody.url }],
      ...{ begun: pair, budget: [{ url: first.url }], 'broken-pair': pair },
      ...{ 'broken-messages': [{ url: first.url }], 'broken-chat': [{ url: first.url }] },
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

const send = (wish: Wish, tenant = 0) => {
  const { base_url: baseUrl } = stack().description
  return ask({ baseUrl, credential: tenants[tenant]?.project_key ?? '' }, wish)
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
      const heard = await send({ format, model, script, isStreamed })
      expect([heard.status, heard.text]).toEqual([200, expect.stringContaining('Hello')])
      expect(await calls()).toEqual([2, 0])
    },
  )

  test.each([400, 413, 422])('a %i is not retried and keeps its words', async (status) => {
    const script = { error: { status, message: 'The prompt is too hot.' } }
    const heard = await send({ format, model, script })
    expect(await calls()).toEqual([1, 0])
    expect(heard.headers['content-type']).toBe('application/json; charset=utf-8')
    const id = expect.stringMatching(/^req_/) as string
    const said = 'The prompt is too hot.'
    const bodies = {
      messages: {
        type: 'error',
        error: { type: expect.any(String), message: said },
        request_id: id,
      },
      chat: { error: { message: said, type: expect.any(String), param: null, code: null } },
      responses: {
        error: `The model provider refused the request: ${said}`,
        code: 'upstream_rejected',
      },
    }
    expect(JSON.parse(heard.text)).toEqual(bodies[format])
    expect(heard.status).toBe(format === 'responses' ? 400 : status)
  })
})

test('a refusal in the words of another format is told in our own', async () => {
  const script = { error: { status: 400, message: 'The prompt is too hot.' } }
  const heard = await send({ format: 'messages', model: 'by-chat', script })
  expect(heard.status).toBe(400)
  expect(JSON.parse(heard.text)).toMatchObject({
    type: 'error',
    error: {
      code: 'upstream_rejected',
      message: 'The model provider refused the request: The prompt is too hot.',
    },
  })
})

test.each(fallbackStatuses)('a %i goes on to the next upstream', async (status) => {
  await failAlways(first.url, { status })
  const heard = await send({ format: 'messages', model: `after-${status}` })
  expect([heard.status, heard.text]).toEqual([200, expect.stringContaining('Hello')])
  // What may pass is tried once more at the same place; what will not is not.
  expect(await calls()).toEqual([status < 500 ? 1 : 2, 1])
})

test('a refused connection goes on to the next upstream, and is a 502 where there is none', async () => {
  expect((await send({ format: 'messages', model: 'after-nobody' })).status).toBe(200)
  expect(await calls()).toEqual([0, 1])
  const alone = await send({ format: 'messages', model: 'only-nobody' })
  expect([alone.status, JSON.parse(alone.text)]).toEqual([
    502,
    expect.objectContaining({ error: expect.objectContaining({ type: 'api_error' }) as unknown }),
  ])
})

test('once the answer has begun, nothing is asked again', async () => {
  const script = { tokens: 20, paceMs: 10, closeAfter: { pieces: 3 } }
  const wish = { format: 'messages', model: 'begun', script } as const
  const [streamed, plain] = [await send(wish), await send({ ...wish, isStreamed: false })]
  expect([streamed.status, streamed.text]).toEqual([200, expect.stringContaining('event: error')])
  expect(plain.status).toBe(502)
  expect(await calls()).toEqual([2, 0])
})

test('an upstream that fails every second call gets a tenth of calls more and ten, not half', async () => {
  const script = { error: { status: 500 } }
  const total = 300
  for (let sent = 0; sent < total; sent += 2) {
    const wish = { format: 'messages', model: 'budget' } as const
    const statuses = [(await send({ ...wish, script })).status, (await send(wish)).status]
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
  '%s: after five failures in a row callers are refused at once',
  async (format) => {
    const model = `broken-${format}`
    await breakUpstream(format, model)
    const heard = await send({ format, model }, 1)
    expect(heard.tookMs).toBeLessThan(100)
    expect(heard.status).toBe(format === 'messages' ? 529 : 503)
    expect(Number(heard.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(heard.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(await calls()).toEqual([breakAfter, 0])
  },
)

test('a broken upstream is passed over while there is another, tried by one call when its pause ends, and used again when it works', async () => {
  await failAlways(first.url, { status: 500 })
  const wish = { format: 'messages', model: 'broken-pair' } as const
  for (let sent = 0; sent < 3; sent++) expect((await send(wish, 1)).status).toBe(200)
  const brokenAt = performance.now()
  expect(await calls()).toEqual([breakAfter, 3])
  for (let sent = 0; sent < 10; sent++) expect((await send(wish, 1)).status).toBe(200)
  expect(await calls()).toEqual([breakAfter, 13])
  await resetUpstream(first.url)
  await sleep(brokenAt + pauseMs + 100 - performance.now())
  // Of many callers at once one finds out that it works; the others do not wait for that.
  const slow = { ...wish, script: { headMs: 500 } }
  const many = await Promise.all(Array.from({ length: 10 }, () => send(slow, 1)))
  expect(many.map(({ status }) => status)).toEqual(many.map(() => 200))
  expect(await calls()).toEqual([1, 22])
  for (let sent = 0; sent < 5; sent++) expect((await send(wish, 1)).status).toBe(200)
  expect(await calls()).toEqual([6, 22])
})
