import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { expect, test } from 'vitest'

import { type Account, openAccount } from './support/credits/money.ts'
import type { ClockStep } from './support/stepped-clock.ts'
import { ask } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// The clock of a whole running service is set ahead and back, while the clocks of PostgreSQL and Redis are right.

const preload = fileURLToPath(new URL('support/stepped-clock.ts', import.meta.url))
const stack = useStack({ environment: { NODE_OPTIONS: `--import ${preload}` } })
const tenMinutesMs = 600_000

async function setClock(aheadMs: number) {
  const { child } = stack().apis[0]!
  const isSet = new Promise((resolve) => child.once('message', resolve))
  child.send({ aheadMs } satisfies ClockStep)
  expect(await isSet).toEqual({ aheadMs })
}

const request = { format: 'messages', model: 'claude-scripted', isStreamed: false } as const
const usage = { input: 100, output: 10 }
const cost = 100 * 3 + 10 * 15

async function expectServed({ target }: Account) {
  const answer = await ask(target, { ...request, script: { text: 'Well.', usage } })
  expect([answer.status, answer.text]).toEqual([200, answer.text])
  expect(JSON.parse(answer.text)).toMatchObject({ estimated_credits_used: cost })
}

/** Calls a model of another upstream until it answers with the status. */
async function callUntil({ target }: Account, expected: number, script: Script = {}) {
  const call = async () =>
    (await ask(target, { ...request, model: 'chat-scripted', script })).status
  await expect.poll(call, { timeout: 60_000, interval: 500 }).toBe(expected)
}

const readiness = async () => (await fetch(`${stack().description.base_url}/health/ready`)).status

test('whatever step the clock makes, calls are served and charged as before, and an open circuit closes after seconds', async () => {
  const account = await openAccount(stack(), 'Clock Ltd', 5_000_000)
  await callUntil(account, 529, { error: { status: 500 } })
  const steps = [-tenMinutesMs, tenMinutesMs, -tenMinutesMs]
  for (const aheadMs of steps) {
    await setClock(aheadMs)
    await expectServed(account)
    // Longer than a poll of the database, whose age decides the readiness.
    await sleep(1200)
    await expectServed(account)
    expect(await readiness()).toBe(200)
  }
  await callUntil(account, 200)
  const entries = (await account.calls()).filter(({ model }) => model === request.model)
  expect(entries.map(({ kind, amount }) => [kind, amount])).toEqual(
    Array.from({ length: 2 * steps.length }, () => ['usage', cost]),
  )
})

test('the limit of requests holds while the clock is wrong and while it steps', async () => {
  const { base_url: baseUrl, project_key: credential } = stack().description
  const statuses: number[] = []
  for (const aheadMs of [-tenMinutesMs, tenMinutesMs, 0, -tenMinutesMs]) {
    await setClock(aheadMs)
    for (let call = 0; call < 20; call++) {
      statuses.push((await ask({ baseUrl, credential }, request)).status)
    }
  }
  expect(statuses).toEqual([...Array<number>(60).fill(200), ...Array<number>(20).fill(429)])
})
