import { runGatehouse } from '@gatehouse/tools/run-script'
import { runOperator } from '@gatehouse/tools/start-stack'
import { describe, expect, test } from 'vitest'

import { openAccount } from './support/credits/money.ts'
import { type Answer, ask, begin, formats } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// Calls in every billing mode (docs/billing.md), for an organization with credits and for one without.
// STACK_BILLING=metered or off runs any other acceptance test in that mode.

const models = ['claude-scripted', 'responses-scripted', 'chat-scripted'] as const
const ways = formats.flatMap((format) =>
  models.flatMap((model) =>
    [true, false].map((isStreamed) => ({ format, model, isStreamed, script: { tokens: 5 } })),
  ),
)
const granted = 5_000_000
const eventually = { timeout: 60_000, interval: 50 }

const receiptOf = ({ text }: Answer) => ({
  credits: Number(/"estimated_credits_used": ?(\d+)/.exec(text)?.[1]),
  remaining: /"remaining_credits": ?(-?\d+|null)/.exec(text)?.[1],
})

const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0)

describe.each(['prepaid', 'metered', 'off'] as const)('BILLING=%s', (billing) => {
  const stack = useStack({ environment: { BILLING: billing } })

  /** A plan, because the requests and tokens of the free tier are few. */
  async function open(name: string, credits: number) {
    const account = await openAccount(stack(), name, credits)
    const plan = ['plan', account.organizationId, '--plan', 'scale']
    await runOperator(stack().service, plan)
    return account
  }
  type Account = Awaited<ReturnType<typeof open>>

  async function askAll(account: Account) {
    const answers: Answer[] = []
    for (const way of ways) answers.push(await ask(account.target, way))
    return answers
  }

  /** What a mode leaves behind for calls with these costs. */
  async function expectRecorded(account: Account, costs: readonly number[]) {
    const used = sumOf(costs)
    const isBilled = billing !== 'off'
    expect(await account.usage()).toEqual({ requests: costs.length, credits: used })
    const entries = await account.calls()
    expect(entries.map(({ kind }) => kind)).toEqual(isBilled ? costs.map(() => 'usage') : [])
    expect(sumOf(entries.map(({ amount }) => amount))).toBe(isBilled ? used : 0)
  }

  test('every format at every upstream, streamed or not: the receipt says the cost, and the balance if there is one', async () => {
    const account = await open('Has credits', granted)
    const answers = await askAll(account)
    expect(answers.map(({ status }) => status)).toEqual(ways.map(() => 200))
    const receipts = answers.map(receiptOf)
    const costs = receipts.map(({ credits }) => credits)
    expect(Math.min(...costs)).toBeGreaterThan(0)
    const balances = costs.map((_, index) => granted - sumOf(costs.slice(0, index + 1)))
    expect(receipts.map(({ remaining }) => remaining)).toEqual(
      balances.map((balance) => (billing === 'prepaid' ? String(balance) : 'null')),
    )
    await expectRecorded(account, costs)
    await expect
      .poll(() => account.balance(), eventually)
      .toBe(billing === 'prepaid' ? granted - sumOf(costs) : null)
  })

  test('without credits: 402 if they are prepaid, and otherwise every call is served', async () => {
    const account = await open('Has none', 0)
    const answers = await askAll(account)
    const status = billing === 'prepaid' ? 402 : 200
    expect(answers.map((answer) => answer.status)).toEqual(ways.map(() => status))
    const served = answers.filter((answer) => answer.status === 200)
    await expectRecorded(
      account,
      served.map((answer) => receiptOf(answer).credits),
    )
  })

  test('calls that fail cost nothing, and callers who hang up pay for what was produced', async () => {
    const account = await open('Ends early', granted)
    const request = { format: 'messages', model: 'claude-scripted' } as const
    const failed = await ask(account.target, {
      ...request,
      script: { error: { status: 400, message: 'No.' } },
    })
    expect(failed.status).toBe(400)
    expect(await account.usage()).toEqual({ requests: 1, credits: 0 })
    const script = { tokens: 50, paceMs: 100 }
    const call = begin(account.target, { ...request, script })
    await expect.poll(() => call.chunks.length, eventually).toBeGreaterThan(2)
    call.hangUp()
    await call.answer.catch(() => undefined)
    await expect.poll(async () => (await account.usage()).requests, eventually).toBe(2)
    expect((await account.usage()).credits).toBeGreaterThan(0)
  })

  test('reconciliation finds that everything agrees', async () => {
    const command = ['operator', 'credits', 'reconcile']
    const output = await runGatehouse(command, { environment: stack().service })
    expect(output).toContain('everything agrees')
  })
})
