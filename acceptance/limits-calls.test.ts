import { connect } from 'node:net'

import { createAdminApiKey } from '@gatehouse/contract/api-key'
import { readLimits } from '@gatehouse/contract/limits'
import { runOperator, startStack } from '@gatehouse/tools/start-stack'
import { expect, test, vi } from 'vitest'

import {
  addTenant,
  callLimited,
  type LimitedAnswer,
  type ProjectKey,
  readAdministration,
  readCredits,
  sendUntilRefused,
  type Tenant,
  whileExact,
  type Wish,
} from './support/limited-call.ts'
import { useStack } from './support/use-stack.ts'

// What limited calls say and what they count, through two processes. Organizations are on the free
// tier: 60 requests and 1M tokens a minute per key, 1.5M tokens per project, 4 calls at once per key. Every
// test has one of its own, so that it can be done again.

const stack = useStack({
  models: null,
  entry: 'testing/limited-main.ts',
  hasLimits: true,
  processes: 2,
})

let turn = 0
/** The processes take turns: what one counts, the other must know. */
function anyProcess(): string {
  const { base_urls: urls } = stack().description
  return urls[turn++ % urls.length]!
}
const send = (key: ProjectKey, wish: Wish = {}) => callLimited(anyProcess(), key.value, wish)

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

const six = ['requests', 'tokens'].flatMap((unit) =>
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

test('200, 403, 422 and 429 say what is left, and every attempt but the 429 counts', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Headers')
    const key = await tenant.addKey()
    const cannot = await tenant.addKey(tenant.projectId, ['credits.read'])
    const answer = await send(key, { tokens: 10 })
    const first = limitHeadersOf(answer)
    expect(first).toEqual({ requests: [60, 59], tokens: [1_000_000, 999_990], names: first.names })
    expect(first.names).toEqual(six.toSorted())
    // A window of a minute, and what is left of a second.
    for (const unit of ['requests', 'tokens']) {
      expect(answer.headers[`x-ratelimit-reset-${unit}`]).toMatch(/^1m(0(\.\d{1,3})?|1)s$/)
    }
    expect(limitHeadersOf(await send(key)).requests).toEqual([60, 58])

    const forbidden = await send(cannot)
    expect([forbidden.status, forbidden.code]).toEqual([403, 'permission_denied'])
    expect(forbidden.headers['x-ratelimit-reset-tokens']).toBe('0s')
    expect(limitHeadersOf(forbidden)).toMatchObject({ requests: [60, 59], names: six.toSorted() })
    expect(limitHeadersOf(await send(cannot)).requests).toEqual([60, 58])

    const invalid = await send(key, { tokens: -1 })
    expect(invalid.status).toBe(422)
    expect(limitHeadersOf(invalid)).toMatchObject({ requests: [60, 57], names: six.toSorted() })

    await sendUntilRefused(() => send(key))
    const before = await usedBy(tenant, key)
    expect(before).toEqual({ requests: 60, tokens: 10, slots: 0 })
    const refused = await send(key)
    expect([refused.status, refused.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(limitHeadersOf(refused)).toMatchObject({
      ...{ requests: [60, 0], tokens: [1_000_000, 999_990] },
      names: six.toSorted() as string[],
    })
    expect(Number(refused.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    expect(await usedBy(tenant, key)).toEqual(before)
  }))

test('the project-tokens headers come only when the tokens of the project are closest to their end', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Project tokens')
    const [one, other] = [await tenant.addKey(), await tenant.addKey()]
    expect(limitHeadersOf(await send(one, { tokens: 800_000 })).names).toEqual(six.toSorted())
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
    expect({ tokens, names }).toEqual({ tokens: [2_000_000, 100_000], names: six.toSorted() })
  }))

test('a hang-up counts, and frees its slot within a second', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Hang-ups')
    const key = await tenant.addKey()
    const callers = Array.from({ length: 4 }, () => new AbortController())
    const held = callers.map(({ signal }) =>
      callLimited(anyProcess(), key.value, { holdMs: 60_000, tokens: 100 }, signal),
    )
    const ended = Promise.allSettled(held)
    await expect.poll(async () => (await usedBy(tenant, key)).slots, { timeout: 5000 }).toBe(4)
    expect((await send(key)).message).toContain('concurrent requests on API key: limit 4')
    for (const caller of callers) caller.abort()
    const hungUpAt = performance.now()
    await expect.poll(async () => (await send(key)).status, { interval: 20 }).toBe(200)
    expect(performance.now() - hungUpAt).toBeLessThan(1000)
    await ended
    expect((await usedBy(tenant, key)).requests).toBe(5)
  }))

test('400: a reservation larger than the limit says so, and counts as a request without tokens', () =>
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

test('tokens that were not used come back, and those used in excess count', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Settlements')
    const key = await tenant.addKey()
    const left = async (wish: Wish) => limitHeadersOf(await send(key, wish)).tokens[1]
    expect(await left({ tokens: 900_000, used: 100_000 })).toBe(100_000)
    expect(await left({ tokens: 50, used: 250 })).toBe(899_950)
    expect(await left({})).toBe(899_750)
    expect(await usedBy(tenant, key)).toEqual({ requests: 3, tokens: 100_250, slots: 0 })
  }))

test('a tier change reaches the next call of every process within 5 s, and a cancelled plan falls back', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Climber')
    const key = await tenant.addKey()
    for (const [args, requestsPerMinute] of [
      [['payment', tenant.id, '--id', 'pay_1', '--usd', '20'], 120],
      [['plan', tenant.id, '--plan', 'growth'], 300],
      [['plan', tenant.id, '--plan', 'free'], 120],
    ] as const) {
      // Every process knows the key, and its tier until now.
      for (const url of stack().description.base_urls) await callLimited(url, key.value)
      await runOperator(stack().service, args)
      const limitAt = async (url: string) =>
        limitHeadersOf(await callLimited(url, key.value)).requests[0]
      const waits = stack().description.base_urls.map((url) =>
        vi.waitFor(async () => expect(await limitAt(url)).toBe(requestsPerMinute), {
          timeout: 5000,
          interval: 250,
        }),
      )
      await Promise.all(waits)
    }
  }))

test('a payment counts once by its id, and is refused with another amount', async () => {
  const { id } = await addTenant(stack(), 'Payer')
  const pay = (payment: string, usd: string) =>
    runOperator(stack().service, ['payment', id, '--id', payment, '--usd', usd])
  expect(await pay('pay_1', '12.50')).toMatchObject({ id, paid_usd: 12.5 })
  expect(await pay('pay_1', '12.50')).toMatchObject({ id, paid_usd: 12.5 })
  await expect(pay('pay_1', '12.51')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringContaining('pay_1') as string,
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
    ...{ 'x-ratelimit-scope': scope, 'x-ratelimit-metric': metric },
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
    // Every creation above was a call of the first key.
    let already = others + 2
    for (const key of keys.slice(0, others)) {
      const { admitted, refusal } = await sendUntilRefused(() =>
        readAdministration(anyProcess(), key),
      )
      expect(admitted + already).toBe(120)
      already = 0
      expectAdminRefusal(refusal, { limit: 120, scope: 'credential' })
    }
    // 480 are used; what a key may not do counts for it all the same, and is never told as a 429.
    for (let sent = 0; sent < 125; sent++) {
      expect((await readAdministration(anyProcess(), forbidden)).status).toBe(403)
    }
    const { refusal, admitted } = await sendUntilRefused(() =>
      readAdministration(anyProcess(), last),
    )
    expect(admitted).toBe(0)
    expectAdminRefusal(refusal, { limit: 600, scope: 'organization' })
  }))

/** A call that has begun and does not end: its body never comes. `head` is what was answered so far. */
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

test('administration: 20 at once per organization over all processes, and the 21st comes in when one ends', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Crowd')
    const read = () => readAdministration(anyProcess(), tenant.adminKey)
    const begun = Array.from({ length: 25 }, () => beginCreation(anyProcess(), tenant.adminKey))
    try {
      const heads = () => begun.map(({ head }) => head.slice(0, 12)).filter(Boolean)
      const refused = 'HTTP/1.1 429'
      await expect.poll(heads, { timeout: 5000 }).toEqual(Array.from({ length: 5 }, () => refused))
      const scope = 'organization'
      expectAdminRefusal(await read(), { limit: 20, scope, metric: 'concurrent_requests' })
      begun.find(({ head }) => head === '')?.socket.destroy()
      await expect.poll(async () => (await read()).status, { timeout: 1000 }).toBe(200)
      const { administration } = await tenant.client.call(readLimits, {})
      expect(administration.concurrent_requests).toEqual({ limit: 20, used: 20 })
    } finally {
      for (const { socket } of begun) socket.destroy()
    }
  }))

test('credit reads: 60 a minute per key, 300 per organization, apart from inference', () =>
  whileExact(stack(), async () => {
    const tenant = await addTenant(stack(), 'Savers')
    const keys: ProjectKey[] = []
    while (keys.length < 6) keys.push(await tenant.addKey())
    for (const [place, key] of keys.slice(0, 5).entries()) {
      const { admitted, refusal } = await sendUntilRefused(() =>
        readCredits(anyProcess(), key.value),
      )
      expect(admitted).toBe(60)
      expect(refusal?.code).toBe('rate_limit_exceeded')
      // The fifth key ends together with its organization: either may be named.
      if (place < 4) expect(refusal?.message).toContain('limit 60.')
      expect(Number(refusal?.headers['retry-after'])).toBeGreaterThanOrEqual(1)
    }
    const sixth = await readCredits(anyProcess(), keys[5]!.value)
    expect([sixth.status, sixth.code]).toEqual([429, 'rate_limit_exceeded'])
    expect(sixth.message).toContain('organization: limit 300.')
    expect(limitHeadersOf(await send(keys[0]!)).requests).toEqual([60, 59])
  }))

test('different refused tokens from one address end in 429, while good keys from there still work', async () => {
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
    ...{ status: 401, most: 500 },
  })
  expect(admitted).toBeGreaterThanOrEqual(100)
  expect(refusal?.code).toBe('rate_limit_exceeded')
  expect(refusal?.message).toContain('refused tokens on address')
  expect((await callLimited(url, key.value)).status).toBe(200)
  expect((await callLimited(url, (await tenant.addKey()).value)).status).toBe(200)
})

test('two processes without Redis are not ready, and say why', async () => {
  const alone = await startStack({ models: null, entry: 'testing/limited-main.ts', redis: null })
  try {
    const second = await alone.startApi('api-2')
    for (const { baseUrl, metricsUrl } of [...alone.apis, second]) {
      const readiness = async () => {
        const answer = await fetch(new URL('/health/ready', metricsUrl))
        return { status: answer.status, ...((await answer.json()) as object) }
      }
      await expect.poll(readiness, { timeout: 15_000, interval: 100 }).toEqual({
        ...{ status: 'unavailable' },
        reasons: [expect.stringContaining('REDIS_URL is not set')],
      })
      expect((await fetch(`${baseUrl}/health/ready`)).status).toBe(503)
    }
  } finally {
    await alone.stop()
  }
})
