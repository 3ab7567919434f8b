import { connect } from 'node:net'

import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { readLimits } from '@gatehouse/contract/limits'
import { runOperator, startStack } from '@gatehouse/tools/start-stack'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Poller, startDatabasePoller } from './support/baseline/poller.ts'
import {
  addTenant,
  callLimited,
  type LimitedAnswer,
  type LimitedCallOptions,
  type ProjectKey,
  readAdministration,
  readCredits,
  sendUntilRefused,
  type Tenant,
  whileExact,
} from './support/limited-call.ts'
import { useStack } from './support/use-stack.ts'

// What answers to limited calls contain and what is counted, through two processes. Organizations are on the free
// tier: 60 requests and 1M tokens a minute per key, 1.5M tokens per project, 4 calls at once per key. Every test has
// its own organization, so that it can be repeated.

const stack = useStack({
  models: null,
  program: 'limited-main',
  hasLimits: true,
  processes: 2,
  // A slow reply of Redis on a busy machine must not make a process count locally.
  environment: { REDIS_DEADLINE_MS: '1000' },
})
let poller: Poller
beforeAll(async () => {
  poller = await startDatabasePoller(stack().database.url)
})
afterAll(() => poller.stop())

let turn = 0
/** The processes take turns: each must know what the other has counted. */
function anyProcess(): string {
  const { base_urls: urls } = stack().description
  return urls[turn++ % urls.length]!
}
const send = (key: ProjectKey, options: LimitedCallOptions = {}) =>
  callLimited(anyProcess(), key.value, options)

/** Long enough for a busy machine; where speed matters, it is checked separately. */
const eventually = { timeout: 30_000, interval: 20 }

const goDuration = /^(0s|\d{1,3}ms|\d{1,2}(\.\d{1,3})?s|(\d+h)?\d{1,2}m\d{1,2}(\.\d{1,3})?s)$/

function limitHeadersOf({ headers, headerNames }: LimitedAnswer) {
  const names = headerNames.filter((name) => /^x-ratelimit-/i.test(name))
  for (const name of names) expect(name).toBe(name.toLowerCase())
  for (const unit of ['requests', 'tokens']) {
    expect(headers[`x-ratelimit-reset-${unit}`]).toMatch(goDuration)
  }
  return {
    requests: [
      Number(headers['x-ratelimit-limit-requests']),
      Number(headers['x-ratelimit-remaining-requests']),
    ],
    tokens: [
      Number(headers['x-ratelimit-limit-tokens']),
      Number(headers['x-ratelimit-remaining-tokens']),
    ],
    names: names.toSorted(),
  }
}

const sixHeaders = ['requests', 'tokens'].flatMap((unit) =>
  ['limit', 'remaining', 'reset'].map((what) => `x-ratelimit-${what}-${unit}`),
)

async function usedBy(tenant: Tenant, key: ProjectKey) {
  const { keys } = await tenant.client.call(readLimits, {})
  const found = keys.find(({ key_id }) => key_id === key.id)
  return {
    requests: found?.requests_per_minute.used ?? 0,
    tokens: found?.tokens_per_minute.used ?? 0,
    slots: found?.concurrent_requests.used ?? 0,
  }
}

test('200, 403, 422 and 429 have the limit headers, and every attempt but the 429 counts', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Headers')
    const key = await tenant.addKey()
    const powerless = await tenant.addKey(tenant.projectId, ['credits.read'])
    const answer = await send(key, { tokens: 10 })
    const first = limitHeadersOf(answer)
    expect(first).toEqual({ requests: [60, 59], tokens: [1_000_000, 999_990], names: first.names })
    expect(first.names).toEqual(sixHeaders.toSorted())
    // A window of a minute, and the rest of the current second.
    for (const unit of ['requests', 'tokens']) {
      expect(answer.headers[`x-ratelimit-reset-${unit}`]).toMatch(/^1m(0(\.\d{1,3})?|1)s$/)
    }
    expect(limitHeadersOf(await send(key)).requests).toEqual([60, 58])

    const forbidden = await send(powerless)
    expect([forbidden.status, forbidden.code]).toEqual([403, 'permission_denied'])
    expect(forbidden.headers['x-ratelimit-reset-tokens']).toBe('0s')
    expect(limitHeadersOf(forbidden)).toMatchObject({
      requests: [60, 59],
      names: sixHeaders.toSorted(),
    })
    expect(limitHeadersOf(await send(powerless)).requests).toEqual([60, 58])

    const invalid = await send(key, { tokens: -1 })
    expect(invalid.status).toBe(422)
    expect(limitHeadersOf(invalid)).toMatchObject({
      requests: [60, 57],
      names: sixHeaders.toSorted(),
    })

    await sendUntilRefused(() => send(key))
    const before = await usedBy(tenant, key)
    expect(before).toEqual({ requests: 60, tokens: 10, slots: 0 })
    const refused = await send(key)
    expect([refused.status, refused.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(limitHeadersOf(refused)).toMatchObject({
      requests: [60, 0],
      tokens: [1_000_000, 999_990],
      names: sixHeaders.toSorted() as string[],
    })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(await usedBy(tenant, key)).toEqual(before)
  }))

test('the project-tokens headers are sent only when the tokens of the project run out first', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Project tokens')
    const [one, other] = [await tenant.addKey(), await tenant.addKey()]
    expect(limitHeadersOf(await send(one, { tokens: 800_000 })).names).toEqual(
      sixHeaders.toSorted(),
    )
    const answer = await send(other, { tokens: 600_000 })
    expect(answer.headers).toMatchObject({
      'x-ratelimit-limit-project-tokens': '1500000',
      'x-ratelimit-remaining-project-tokens': '100000',
      'x-ratelimit-reset-project-tokens': expect.stringMatching(goDuration) as string,
      'x-ratelimit-limit-tokens': '1500000',
      'x-ratelimit-remaining-tokens': '100000',
    })
    const elsewhere = await tenant.addKey(await tenant.addProject())
    const { tokens, names } = limitHeadersOf(await send(elsewhere, { tokens: 500_000 }))
    expect({ tokens, names }).toEqual({
      tokens: [2_000_000, 100_000],
      names: sixHeaders.toSorted(),
    })
  }))

/** After a hang-up a slot may stay taken for this many round trips of an ordinary call. */
const roundTripsMax = 100

async function medianRoundTripMs(key: ProjectKey): Promise<number> {
  const times: number[] = []
  while (times.length < 9) {
    const startedAt = performance.now()
    expect((await send(key)).status).toBe(200)
    times.push(performance.now() - startedAt)
  }
  return times.toSorted((left, right) => left - right)[4]!
}

test(`a hang-up counts, and frees its slot within ${roundTripsMax} round trips`, () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Hang-ups')
    const [key, other] = [await tenant.addKey(), await tenant.addKey(await tenant.addProject())]
    const callers = Array.from({ length: 4 }, () => new AbortController())
    const held = callers.map(({ signal }) =>
      callLimited(anyProcess(), key.value, { holdMs: 60_000, tokens: 100 }, signal),
    )
    const ended = Promise.allSettled(held)
    await expect.poll(async () => (await usedBy(tenant, key)).slots, eventually).toBe(4)
    expect((await send(key)).message).toContain('concurrent requests on API key: limit 4')
    const roundTripMs = await medianRoundTripMs(other)
    for (const caller of callers) caller.abort()
    const hungUpAt = performance.now()
    await expect.poll(async () => (await send(key)).status, eventually).toBe(200)
    const freedMs = performance.now() - hungUpAt
    console.log(
      `freed after ${Math.round(freedMs)} ms, a round trip takes ${Math.round(roundTripMs)} ms`,
    )
    expect(freedMs / roundTripMs).toBeLessThan(roundTripsMax)
    await ended
    expect((await usedBy(tenant, key)).requests).toBe(5)
  }))

test('400: a reservation larger than the limit counts as a request without tokens', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Too large')
    const key = await tenant.addKey()
    const answer = await send(key, { tokens: 1_000_001 })
    expect([answer.status, answer.code]).toEqual([400, 'invalid_request'])
    expect(answer.message).toContain('1000000')
    expect(limitHeadersOf(answer)).toMatchObject({ requests: [60, 59], tokens: [1e6, 1e6] })
    expect(await usedBy(tenant, key)).toEqual({ requests: 1, tokens: 0, slots: 0 })
    expect((await send(key, { tokens: 1_000_000 })).status).toBe(200)
  }))

test('unused reserved tokens are released, and tokens used beyond the reservation count', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Settlements')
    const key = await tenant.addKey()
    const left = async (options: LimitedCallOptions) =>
      limitHeadersOf(await send(key, options)).tokens[1]
    expect(await left({ tokens: 900_000, used: 100_000 })).toBe(100_000)
    expect(await left({ tokens: 50, used: 250 })).toBe(899_950)
    expect(await left({})).toBe(899_750)
    expect(await usedBy(tenant, key)).toEqual({ requests: 3, tokens: 100_250, slots: 0 })
  }))

/** Processes poll for changes once a second, and must apply them within 5 seconds. */
const pollsMax = 5

test(`a tier change reaches every process within ${pollsMax} polls, and a cancelled plan falls back`, () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Climber')
    const key = await tenant.addKey()
    for (const [args, requestsPerMinute] of [
      [['payment', tenant.id, '--id', 'pay_1', '--usd', '20'], 120],
      [['plan', tenant.id, '--plan', 'growth'], 300],
      [['plan', tenant.id, '--plan', 'free'], 120],
    ] as const) {
      // Every process has cached the key and its tier.
      for (const url of stack().description.base_urls) await callLimited(url, key.value)
      await runOperator(stack().service, args)
      const startedAt = performance.now()
      const limitAt = async (url: string) =>
        limitHeadersOf(await callLimited(url, key.value)).requests[0]
      const limits = () => Promise.all(stack().description.base_urls.map(limitAt))
      await expect
        .poll(limits, { ...eventually, interval: 250 })
        .toEqual([requestsPerMinute, requestsPerMinute])
      const polls = (performance.now() - startedAt) / poller.longestPauseMs(startedAt)
      expect(polls).toBeLessThanOrEqual(pollsMax)
    }
  }))

test('a payment counts once by its id, and is refused with another amount', async () => {
  const { id } = await addTenant(stack(), 'Payer')
  const pay = (payment: string, usd: string) =>
    runOperator(stack().service, ['payment', id, '--id', payment, '--usd', usd])
  expect(await pay('pay_1', '12.50')).toMatchObject({ id, paid_usd: 12.5 })
  expect(await pay('pay_1', '12.50')).toMatchObject({ id, paid_usd: 12.5 })
  await expect(pay('pay_1', '12.51')).rejects.toMatchObject({
    message: expect.stringContaining('pay_1') as string,
    cause: { code: 1 },
  })
  expect(await pay('pay_2', '7.50')).toMatchObject({ id, paid_usd: 20 })
})

async function addAdminKey({ client }: Tenant, permissions: 'projects.read'[]) {
  const body = { name: 'limited', permissions }
  return (await client.call(createAdminApiKey, { body })).value
}

function expectAdminRefusal(
  answer: LimitedAnswer | undefined,
  { limit, scope, metric = 'requests' }: { limit: number; scope: string; metric?: string },
) {
  const { status, code, headers } = answer!
  const isSlot = metric === 'concurrent_requests'
  const kind = isSlot ? 'concurrency_limit_exceeded' : 'rate_limit_exceeded'
  expect([status, code]).toEqual([429, kind])
  expect(headers).toMatchObject({
    'retry-after': expect.stringMatching(isSlot ? /^1$/ : /^\d{1,2}$/) as string,
    'x-ratelimit-limit': String(limit),
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': expect.stringMatching(/^\d{10}$/) as string,
    'x-ratelimit-scope': scope,
    'x-ratelimit-metric': metric,
  })
  const resetInSeconds = Number(headers['x-ratelimit-reset']) - Date.now() / 1000
  expect(Math.abs(resetInSeconds - Number(headers['retry-after']))).toBeLessThan(3)
}

test('administration: 120 a minute per credential, 600 per organization, and 403 comes before 429', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Administrators')
    const others = 4
    const keys = [tenant.adminKey]
    while (keys.length <= others) keys.push(await addAdminKey(tenant, ['projects.read']))
    const forbidden = await addAdminKey(tenant, [])
    const last = await addAdminKey(tenant, ['projects.read'])
    // Each key above was created by a call of the first one.
    let already = others + 2
    for (const key of keys.slice(0, others)) {
      const { admitted, refusal } = await sendUntilRefused(() =>
        readAdministration(anyProcess(), key),
      )
      expect(admitted + already).toBe(120)
      already = 0
      expectAdminRefusal(refusal, { limit: 120, scope: 'credential' })
    }
    // 480 are used; calls that a key has no permission for count too, and are answered 403, never 429.
    for (let sent = 0; sent < 125; sent++) {
      expect((await readAdministration(anyProcess(), forbidden)).status).toBe(403)
    }
    const { refusal, admitted } = await sendUntilRefused(() =>
      readAdministration(anyProcess(), last),
    )
    expect(admitted).toBe(0)
    expectAdminRefusal(refusal, { limit: 600, scope: 'organization' })
  }))

/** A call whose body never arrives, so that it does not end. `head` is the response so far. */
function beginCreation(baseUrl: string, credential: string) {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect(Number(port), hostname)
  const begun = { socket, head: '' }
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => (begun.head += chunk.toString()))
  socket.write(
    `POST /v1/organization/projects HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${credential}\r\n` +
      'Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{',
  )
  return begun
}

test('administration: 20 concurrent calls per organization over all processes; the 21st is admitted when one ends', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Crowd')
    const read = () => readAdministration(anyProcess(), tenant.adminKey)
    const begun = Array.from({ length: 25 }, () => beginCreation(anyProcess(), tenant.adminKey))
    try {
      const heads = () => begun.map(({ head }) => head.slice(0, 12)).filter(Boolean)
      const refused = 'HTTP/1.1 429'
      await expect.poll(heads, eventually).toEqual(Array.from({ length: 5 }, () => refused))
      const scope = 'organization'
      expectAdminRefusal(await read(), { limit: 20, scope, metric: 'concurrent_requests' })
      begun.find(({ head }) => head === '')?.socket.destroy()
      await expect.poll(async () => (await read()).status, eventually).toBe(200)
      // The slot of the last read is freed after its answer, so this read may be refused at first.
      const slots = async () =>
        (await tenant.client.call(readLimits, {})).administration.concurrent_requests
      await expect.poll(slots, eventually).toEqual({ limit: 20, used: 20 })
    } finally {
      for (const { socket } of begun) socket.destroy()
    }
  }))

test('credit reads: 60 a minute per key, 300 per organization, counted apart from inference', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Savers')
    const keys: ProjectKey[] = []
    while (keys.length < 6) keys.push(await tenant.addKey())
    for (const [index, key] of keys.slice(0, 5).entries()) {
      const { admitted, refusal } = await sendUntilRefused(() =>
        readCredits(anyProcess(), key.value),
      )
      expect(admitted).toBe(60)
      expect(refusal?.code).toBe('rate_limit_exceeded')
      // The fifth key reaches its limit together with its organization: either may be named.
      if (index < 4) expect(refusal?.message).toContain('limit 60.')
      expect(Number(refusal?.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    const sixth = await readCredits(anyProcess(), keys[5]!.value)
    expect([sixth.status, sixth.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(sixth.message).toContain('organization: limit 300.')
    expect(limitHeadersOf(await send(keys[0]!)).requests).toEqual([60, 59])
  }))

test('many different invalid tokens from one address end in 429, while valid keys from there still work', async () => {
  const tenant = await addTenant(stack(), 'Neighbours')
  const key = await tenant.addKey()
  const url = stack().description.base_url
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
  let made = 0
  const token = () =>
    [
      part({ alg: 'RS256', kid: 'a' }),
      part({ iss: 'https://a.test', sub: `${made++}` }),
      'c2ln',
    ].join('.')
  const { admitted, refusal } = await sendUntilRefused(() => callLimited(url, token()), {
    status: 401,
    most: 500,
  })
  expect(admitted).toBeGreaterThanOrEqual(100)
  expect(refusal?.code).toBe('rate_limit_exceeded')
  expect(refusal?.message).toContain('refused tokens on address')
  expect((await callLimited(url, key.value)).status).toBe(200)
  expect((await callLimited(url, (await tenant.addKey()).value)).status).toBe(200)
})

test('two processes without Redis are not ready, and report why', async () => {
  const alone = await startStack({ models: null, program: 'limited-main', redis: null })
  try {
    const second = await alone.startApi('api-2')
    for (const { baseUrl, metricsUrl } of [...alone.apis, second]) {
      const readiness = async () => {
        const answer = await fetch(new URL('/health/ready', metricsUrl))
        return { status: answer.status, ...((await answer.json()) as object) }
      }
      await expect.poll(readiness, { timeout: 60_000, interval: 100 }).toEqual({
        status: 'unavailable',
        reasons: [expect.stringContaining('REDIS_URL is not set')],
      })
      expect((await fetch(`${baseUrl}/health/ready`)).status).toBe(503)
    }
  } finally {
    await alone.stop()
  }
})
