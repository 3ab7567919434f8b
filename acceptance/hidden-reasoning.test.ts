import { expect, test } from 'vitest'

import { openAccount } from './support/credits/money.ts'
import { begin, type Format, formats } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// A caller that hangs up after the last visible word pays for the reasoning that it did not see.

const stack = useStack({ paidUsd: '1000' })

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

/** Nothing is visible for most of the time, and nearly all of the output is hidden. What is visible fills a window of moderation. */
const script = {
  headMs: 500,
  text: 'The answer is 42. '.repeat(6),
  usage: { input: 1000, output: 20_000, reasoning: 19_990 },
  stallAfter: { pieces: 100, ms: 400 },
}
const limits = {
  messages: 'max_tokens',
  chat: 'max_completion_tokens',
  responses: 'max_output_tokens',
}

/** As many complete calls as it takes to know how fast a model writes. */
const callsBefore = 10

test.each(formats)(
  '%s: hanging up after the last word costs most of what waiting costs',
  async (format) => {
    const account = await openAccount(stack(), `Thinker of ${format}`, 50_000_000)
    await account.recordPayment(500)
    const options = { format, model: modelOf[format], script, body: { [limits[format]]: 30_000 } }
    const whole = await Promise.all(
      Array.from({ length: callsBefore }, () => begin(account.target, options).answer),
    )
    expect(whole.map(({ status }) => status)).toEqual(whole.map(() => 200))
    const [usual] = await account.calls()
    expect(usual).toMatchObject({ amount: 303_000, usage_source: 'upstream' })

    const call = begin(account.target, options)
    await expect.poll(() => call.chunks.map(({ text }) => text).join('')).toContain('42.')
    call.hangUp()
    await expect.poll(async () => (await account.calls()).length).toBe(callsBefore + 1)
    const [cut] = await account.calls()
    expect(cut).toMatchObject({ usage_source: 'time-estimate' })
    expect(Number(cut?.amount) / 303_000).toBeGreaterThan(0.3)
    expect(cut?.output_tokens).toBeLessThanOrEqual(30_000)
  },
)

test('one report of far more than was asked for does not raise what a cut stream costs', async () => {
  const account = await openAccount(stack(), 'Neighbour of an odd report', 50_000_000)
  await account.recordPayment(500)
  const model = modelOf.messages
  const ask = (text: object, max_tokens: number) =>
    begin(account.target, { format: 'messages', model, script: text, body: { max_tokens } })
  let calls = 0
  const chargeOf = async (call: ReturnType<typeof ask>) => {
    await call.answer.catch(() => undefined)
    calls++
    const charges = async () => (await account.calls()).filter(({ kind }) => kind === 'usage')
    await expect.poll(async () => (await charges()).length).toBe(calls)
    return Number((await charges())[0]?.amount)
  }
  /** Silent for a while, then three words, then silent until the caller leaves. */
  async function cut() {
    const silent = { text: 'one two three', headMs: 500, stallAfter: { pieces: 1, ms: 8000 } }
    const call = ask(silent, 50_000)
    setTimeout(call.hangUp, 1500)
    return chargeOf(call)
  }
  for (let call = 0; call < callsBefore + 2; call++) {
    await chargeOf(ask({ text: 'one two three four five' }, 50_000))
  }
  const before = await cut()
  await chargeOf(ask({ text: 'hello', usage: { input: 5, output: 50_000 } }, 10))
  const after = await cut()
  console.log(`${before} credits before the report, ${after} after it`)
  expect(after).toBeLessThan(3 * before)
})
