import { setTimeout as sleep } from 'node:timers/promises'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { expect, test } from 'vitest'

import { type Account, openAccount, recomputed } from './support/money.ts'
import { ask, begin, eventsOf, type Format, formats, type Heard } from './support/stream-call.ts'
import { useStack } from './support/use-stack.ts'

// What a call costs, who can afford it, and what somebody pays who leaves early; over HTTP, as callers see it.

/** So dear that an organization of the highest tier, which has many slots, can afford ten calls. */
function withDearModel(urls: UpstreamUrls) {
  const { upstreams, models } = stackModels(urls)
  const [some] = models.filter(({ id }) => id === 'chat-scripted')
  return { upstreams, models: [...models, { ...some, id: 'dear', prices: dearPrices }] }
}
const dearPrices = { input: '3', output: '50000' }
const stack = useStack({ processes: 2, models: withDearModel })

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

/** Where each format says what a call has cost. */
function receiptOf(format: Format, isStreamed: boolean, { text }: Heard): Receipt {
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

const neededIn = ({ text }: Heard) => Number(/may cost up to (\d+) credits/.exec(text)?.[1])

for (const format of formats) {
  const wish = { format, model: modelOf[format] }

  test.for([true, false])(
    `${format}: the receipt, the balance and the ledger agree (streamed: %s)`,
    async (isStreamed) => {
      const account = await openAccount(stack(), `Agree ${format} ${isStreamed}`, 5_000_000)
      const script = { tokens: 7, usage: { input: 1001, output: 301 } }
      const heard = await ask(account.target, { ...wish, script, isStreamed })
      const [entry] = await account.calls()
      expect([heard.status, entry?.kind, entry?.usage_source]).toEqual([200, 'usage', 'upstream'])
      expect([entry?.input_tokens, entry?.output_tokens]).toEqual([1001, 301])
      expect(entry?.amount).toBe(1001 * 3 + 301 * 15)
      expect(receiptOf(format, isStreamed, heard)).toMatchObject({
        remaining_credits: 5_000_000 - entry!.amount,
        estimated_credits_used: entry!.amount,
        estimated_cost_usd: entry!.amount / 1_000_000,
      })
      expect(entry!.id).toBe(heard.headers['x-request-id'])
      expect([entry!.project_id, entry!.key_id]).toEqual([account.projectId, account.keyId])
      await expect.poll(() => account.balance(), { timeout: 6000 }).toBe(5_000_000 - entry!.amount)
    },
  )

  test(`${format}: 402 exactly at the boundary, in the body of its family`, async () => {
    const account = await openAccount(stack(), `Boundary ${format}`)
    const refused = await ask(account.target, wish)
    const needed = neededIn(refused)
    expect([refused.status, needed > 0]).toEqual([402, true])
    expect(refused.text).toContain('and 0 are available')
    expect(refused.headers).not.toHaveProperty('retry-after')
    await account.give(needed - 1)
    const almost = await ask(account.target, wish)
    expect([almost.status, neededIn(almost)]).toEqual([402, needed])
    expect(JSON.parse(almost.text)).toMatchObject(bodyOf402[format])
    await account.give(1)
    expect((await ask(account.target, wish)).status).toBe(200)
  })

  test.for([
    ['before the head', { error: { status: 400 } }, 400],
    ['at every attempt', { error: { status: 500 } }, 502],
  ] as const)(`${format}: a call that fails %s costs nothing`, async ([, script, status]) => {
    const account = await openAccount(stack(), `Failing ${format} ${status}`, 5_000_000)
    const heard = await ask(account.target, { ...wish, script, isStreamed: false })
    expect(heard.status).toBe(status)
    expect((await account.calls()).map(({ kind, amount }) => [kind, amount])).toEqual([
      ['usage', 0],
    ])
    await expect.poll(() => account.balance(), { timeout: 6000 }).toBe(5_000_000)
  })
}

const bodyOf402: Record<Format, object> = {
  messages: { type: 'error', error: { type: 'permission_error', code: 'insufficient_credits' } },
  responses: { error: expect.any(String) as string, code: 'insufficient_credits' },
  chat: { error: { type: 'insufficient_quota', param: null, code: 'insufficient_credits' } },
}

/** Five words, then silence until the caller goes. */
const untilSilence: Script = { tokens: 50, stallAfter: { pieces: 5, ms: 30_000 } }

async function leaveEarly(account: Account, format: Format, isStreamed: boolean) {
  const wish = { format, model: modelOf[format], script: untilSilence, isStreamed }
  const call = begin(account.target, wish)
  await sleep(700)
  call.hangUp()
  await expect.poll(() => account.calls(), { timeout: 10_000 }).toHaveLength(1)
  const [entry] = await account.calls()
  return entry!
}

test('who hangs up pays for what was produced, the same in every format, streamed or not', async () => {
  const ways = formats.flatMap((format) =>
    [true, false].map((isStreamed) => ({ format, isStreamed })),
  )
  const entries = await Promise.all(
    ways.map(async ({ format, isStreamed }) => {
      const account = await openAccount(stack(), `Leaving ${format} ${isStreamed}`, 5_000_000)
      const entry = await leaveEarly(account, format, isStreamed)
      await expect.poll(() => account.balance(), { timeout: 6000 }).toBe(5_000_000 - entry.amount)
      return entry
    }),
  )
  for (const entry of entries) {
    expect([entry.kind, entry.usage_source]).toEqual(['usage', 'local-estimate'])
    expect(entry.input_tokens).toBeGreaterThan(0)
    expect(BigInt(entry.amount)).toBe(recomputed(entry))
  }
  // Five short words are five to ten tokens, and the same ones whoever carried them.
  const outputs = new Set(entries.map(({ output_tokens }) => output_tokens))
  expect(outputs.size).toBe(1)
  expect([...outputs][0]).toBeGreaterThanOrEqual(5)
  expect([...outputs][0]).toBeLessThanOrEqual(10)
})

test('100 at once against a balance for 10: exactly 10 are let in', async () => {
  const account = await openAccount(stack(), 'Ten of a hundred')
  const [first, second] = stack().description.base_urls
  const wish = {
    ...({ format: 'chat', model: 'dear', isStreamed: false } as const),
    ...{ script: { tokens: 3, headMs: 8000 }, body: { max_completion_tokens: 10_000 } },
  }
  const needed = neededIn(await ask(account.target, wish))
  await account.pay(5000)
  await account.give(needed * 10 - 5_000_000_000)
  /** Slots are limited too; whoever finds none comes back. */
  const insist = async (index: number) => {
    const target = { ...account.target, baseUrl: index % 2 === 0 ? first! : second! }
    for (;;) {
      const heard = await ask(target, wish)
      if (heard.status !== 429) return heard.status
      await sleep(200 + Math.random() * 200)
    }
  }
  const statuses = await Promise.all(Array.from({ length: 100 }, (_, index) => insist(index)))
  const count = (status: number) => statuses.filter((each) => each === status).length
  expect([count(200), count(402)]).toEqual([10, 90])
  expect((await account.calls()).filter(({ amount }) => amount > 0)).toHaveLength(10)
})

test('the anonymous request is given once, whatever an address claims to be', async () => {
  const { base_url } = stack().description
  const send = async (path: string, headers: Record<string, string> = {}) => {
    const model = 'claude-scripted'
    const body = { model, max_tokens: 50, messages: [{ role: 'user', content: 'Hi' }], input: 'Hi' }
    const response = await fetch(`${base_url}${path}`, {
      ...{ method: 'POST', body: JSON.stringify(body) },
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
