import { setTimeout as sleep } from 'node:timers/promises'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { afterAll, expect, test } from 'vitest'

import { type Account, openAccount, computeAmount } from './support/credits/money.ts'
import {
  type Answer,
  ask,
  begin,
  eventsOf,
  foldedCall,
  type Format,
  formats,
  type RunningCall,
} from './support/streams/call.ts'
import { startLockstep } from './support/streams/lockstep.ts'
import { catalogueOf } from './support/streams/models.ts'
import { stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// What a call costs, when it is refused for lack of credits, and what a caller who hangs up early pays, over HTTP.

const pieces = 3
const lockstep = await startLockstep(pieces)
afterAll(lockstep.stop)

/** So expensive that an organization of the highest tier, which has many slots, can afford only ten calls. */
function withExpensiveModel(urls: UpstreamUrls) {
  const usual = stackModels(urls)
  const { upstreams, models } = catalogueOf({ expensive: [{ url: lockstep.url, format: 'chat' }] })
  return {
    upstreams: { ...usual.upstreams, ...upstreams },
    models: [
      ...usual.models.map(withoutReasoning),
      { ...models[0], prices: { input: '3', output: '50000' } },
    ],
  }
}
/** A caller who hangs up on it pays for what it showed, and for nothing else. */
const withoutReasoning = (model: object) => ({ ...model, capabilities: { reasoning: false } })

const stack = useStack({ processes: 3, models: withExpensiveModel })

/** Long enough for a busy machine; how fast it happens is not checked. */
const eventually = { timeout: 60_000, interval: 50 }

/** Balances are read from a cache that is at most 5 seconds old: a later read must return the new one. */
const cacheMaxMs = 5000

async function expectBalance(account: Account, credits: number) {
  const settledAt = Date.now()
  for (;;) {
    const isLate = Date.now() - settledAt > cacheMaxMs
    const balance = await account.balance()
    if (balance === credits || isLate) return expect(balance).toBe(credits)
    await sleep(100)
  }
}

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

type Receipt = {
  remaining_credits: number | null
  estimated_credits_used: number
  estimated_cost_usd: number
}

/** Finds the receipt in an answer of any format. */
function readReceipt(format: Format, isStreamed: boolean, { text }: Answer): Receipt {
  if (!isStreamed) return JSON.parse(text) as Receipt
  const carries = (data: object): data is Receipt => 'remaining_credits' in data
  const bodies = eventsOf(text).flatMap(({ data }) => {
    if (data === '[DONE]') return []
    const response = data['response']
    return format === 'responses' && response ? [response as object] : [data]
  })
  const found = bodies.filter(carries)
  expect(found, `${format}: the closing event carries the receipt once`).toHaveLength(1)
  return found[0]!
}

const neededIn = ({ text }: Answer) => Number(/may cost up to (\d+) credits/.exec(text)?.[1])

for (const format of formats) {
  const request = { format, model: modelOf[format] }

  test.for([true, false])(
    `${format}: the receipt, the balance and the ledger agree (streamed: %s)`,
    async (isStreamed) => {
      const account = await openAccount(stack(), `Agree ${format} ${isStreamed}`, 5_000_000)
      const script = { tokens: 7, usage: { input: 1001, output: 301 } }
      const answer = await ask(account.target, { ...request, script, isStreamed })
      const [entry] = await account.calls()
      expect([answer.status, entry?.kind, entry?.usage_source]).toEqual([200, 'usage', 'upstream'])
      expect([entry?.input_tokens, entry?.output_tokens]).toEqual([1001, 301])
      expect(entry?.amount).toBe(1001 * 3 + 301 * 15)
      expect(readReceipt(format, isStreamed, answer)).toMatchObject({
        remaining_credits: 5_000_000 - entry!.amount,
        estimated_credits_used: entry!.amount,
        estimated_cost_usd: entry!.amount / 1_000_000,
      })
      expect(entry!.id).toBe(answer.headers['x-request-id'])
      expect([entry!.project_id, entry!.key_id]).toEqual([account.projectId, account.keyId])
      await expectBalance(account, 5_000_000 - entry!.amount)
    },
  )

  test(`${format}: 402 exactly at the boundary, in the error format of the dialect`, async () => {
    const account = await openAccount(stack(), `Boundary ${format}`)
    const refused = await ask(account.target, request)
    const needed = neededIn(refused)
    expect([refused.status, needed > 0]).toEqual([402, true])
    const usd = (needed / 1_000_000).toFixed(6).replace(/0{1,4}$/, '')
    expect(refused.text).toContain(`up to ${needed} credits (${usd} USD); 0 (0.00 USD) are in`)
    expect(refused.text).toContain('in the account and 0 (0.00 USD) of them are held')
    expect(refused.headers).not.toHaveProperty('retry-after')
    await account.grant(needed - 1)
    const almost = await ask(account.target, request)
    expect([almost.status, neededIn(almost)]).toEqual([402, needed])
    expect(JSON.parse(almost.text)).toMatchObject(bodyOf402[format])
    await account.grant(1)
    expect((await ask(account.target, request)).status).toBe(200)
  })

  test.for([
    ['before the head', { error: { status: 400 } }, 400],
    ['at every attempt', { error: { status: 500 } }, 502],
  ] as const)(`${format}: a call that fails %s costs nothing`, async ([, script, status]) => {
    const account = await openAccount(stack(), `Failing ${format} ${status}`, 5_000_000)
    const answer = await ask(account.target, { ...request, script, isStreamed: false })
    expect(answer.status).toBe(status)
    expect((await account.calls()).map(({ kind, amount }) => [kind, amount])).toEqual([
      ['usage', 0],
    ])
    await expectBalance(account, 5_000_000)
  })
}

const bodyOf402: Record<Format, object> = {
  messages: { type: 'error', error: { type: 'permission_error', code: 'insufficient_credits' } },
  responses: { error: expect.any(String) as string, code: 'insufficient_credits' },
  chat: { error: { type: 'insufficient_quota', param: null, code: 'insufficient_credits' } },
}

/** Thirty words, then silence until the caller hangs up. Twenty are in the first window of moderation, and leave. */
const untilSilence: Script = {
  text: 'bird '.repeat(50),
  stallAfter: { pieces: 30, ms: 300_000 },
}
const pieceOf = /text_delta|response\.output_text\.delta"|"delta":\{"content":"[^"]/g

/**
 * Starts the same call on all accounts, and hangs up when all thirty words must have arrived at the gateway: callers do not see
 * all of them, or none, so it waits as long again as the slowest stream took.
 */
async function hangUpAfterThirtyWords(
  accounts: { account: Account; format: Format; isStreamed: boolean }[],
) {
  const startedAt = performance.now()
  const calls = accounts.map(({ account, format, isStreamed }) => ({
    isStreamed,
    ...begin(account.target, {
      format,
      model: modelOf[format],
      script: untilSilence,
      isStreamed,
      body: isStreamed ? {} : foldedCall[format],
    }),
  }))
  const hasWindow = ({ chunks }: RunningCall) =>
    (
      chunks
        .map(({ text }) => text)
        .join('')
        .match(pieceOf) ?? []
    ).length >= 20
  await expect
    .poll(() => calls.filter((call) => call.isStreamed).every(hasWindow), eventually)
    .toBe(true)
  await sleep(performance.now() - startedAt)
  for (const { hangUp } of calls) hangUp()
}

test.each(formats)(
  '%s: a caller who hangs up on a plain answer pays for all of it, as its upstream reports it',
  async (format) => {
    const account = await openAccount(stack(), `Leaving early ${format}`, 5_000_000)
    const script = { tokens: 7, headMs: 1000, usage: { input: 1001, output: 301 } }
    const received = async () => (await stateOf(stack().description.upstream_url)).requests
    const before = await received()
    const call = begin(account.target, {
      format,
      model: modelOf[format],
      script,
      isStreamed: false,
    })
    await expect.poll(received, eventually).toBe(before + 1)
    call.hangUp()
    await expect.poll(() => account.calls(), eventually).toHaveLength(1)
    const [entry] = await account.calls()
    expect([entry!.usage_source, entry!.amount]).toEqual(['upstream', 1001 * 3 + 301 * 15])
    await expectBalance(account, 5_000_000 - entry!.amount)
  },
)

test('a caller who hangs up pays for what was produced, the same in every format, streamed or folded', async () => {
  const ways = formats.flatMap((format) =>
    [true, false].map((isStreamed) => ({ format, isStreamed })),
  )
  const accounts = await Promise.all(
    ways.map(async ({ format, isStreamed }) => {
      const name = `Leaving ${format} ${isStreamed}`
      return { account: await openAccount(stack(), name, 5_000_000), format, isStreamed }
    }),
  )
  await hangUpAfterThirtyWords(accounts)
  const entries = await Promise.all(
    accounts.map(async ({ account }) => {
      await expect.poll(() => account.calls(), eventually).toHaveLength(1)
      const [entry] = await account.calls()
      await expectBalance(account, 5_000_000 - entry!.amount)
      return entry!
    }),
  )
  for (const entry of entries) {
    expect([entry.kind, entry.usage_source]).toEqual(['usage', 'local-estimate'])
    expect(entry.input_tokens).toBeGreaterThan(0)
    expect(BigInt(entry.amount)).toBe(computeAmount(entry))
  }
  // Thirty short words are thirty to forty tokens, in every format the same.
  const outputs = new Set(entries.map(({ output_tokens }) => output_tokens))
  expect(outputs.size).toBe(1)
  expect([...outputs][0]).toBeGreaterThanOrEqual(30)
  expect([...outputs][0]).toBeLessThanOrEqual(40)
})

test('of 100 concurrent calls on 3 processes with a balance for 10, exactly 10 are admitted', async () => {
  const account = await openAccount(stack(), 'Ten of a hundred')
  const { base_urls } = stack().description
  const request = {
    format: 'chat' as const,
    model: 'expensive',
    isStreamed: false,
    body: { max_completion_tokens: 10_000 },
  }
  const needed = neededIn(await ask(account.target, request))
  await account.recordPayment(5000)
  await account.grant(needed * 10 - 5_000_000_000)
  const statuses: number[] = []
  const count = (status: number) => statuses.filter((each) => each === status).length
  /** Slots are limited too: a call refused with 429 is repeated. */
  const callUntilDecided = async (index: number) => {
    const target = { ...account.target, baseUrl: base_urls[index % base_urls.length]! }
    for (;;) {
      const answer = await ask(target, request)
      if (answer.status !== 429) return statuses.push(answer.status)
      await sleep(200 + Math.random() * 200)
    }
  }
  const calls = Promise.all(Array.from({ length: 100 }, (_, index) => callUntilDecided(index)))
  // The upstream sends nothing until all other calls have been refused, so no hold is released meanwhile.
  await expect.poll(() => count(402), eventually).toBe(90)
  for (let piece = 0; piece < pieces; piece++) lockstep.sendNext()
  await calls
  expect(base_urls).toHaveLength(3)
  expect([count(200), count(402)]).toEqual([10, 90])
  expect((await account.calls()).filter(({ amount }) => amount > 0)).toHaveLength(10)
})

test('each address gets one anonymous request, whatever its headers claim', async () => {
  const { base_url } = stack().description
  const send = async (path: string, headers: Record<string, string> = {}) => {
    const model = 'claude-scripted'
    const body = { model, max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }], input: 'Hi' }
    const response = await fetch(`${base_url}${path}`, {
      method: 'POST',
      body: JSON.stringify(body),
      headers: { 'content-type': 'application/json', 'x-free-tier': 'true', ...headers },
    })
    return { status: response.status, body: (await response.json()) as Record<string, unknown> }
  }
  const wrong = await send('/v1/messages', { 'x-free-tier': 'yes' })
  expect([wrong.status, wrong.body['type']]).toEqual([400, 'error'])
  const first = await send('/v1/messages')
  expect(first.status).toBe(200)
  expect(first.body).toMatchObject({ remaining_credits: null, estimated_credits_used: 0 })
  expect(first.body['estimated_cost_usd']).toBeGreaterThan(0)
  const forged = { 'x-forwarded-for': '203.0.113.7', forwarded: 'for=203.0.113.7' }
  for (const headers of [{}, forged, { 'x-real-ip': '203.0.113.7' }]) {
    const again = await send('/v1/messages', headers)
    expect([again.status, again.body]).toMatchObject([
      401,
      { type: 'error', error: { type: 'authentication_error', code: 'free_request_used' } },
    ])
    expect(JSON.stringify(again.body)).toContain('Sign up to continue')
  }
  const other = await send('/v1/responses')
  expect([other.status, other.body['code']]).toEqual([401, 'free_request_used'])
})
