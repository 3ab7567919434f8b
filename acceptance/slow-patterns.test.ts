import { setTimeout as sleep } from 'node:timers/promises'

import { createTenants } from '@gatehouse/tools/start-stack'
import { beforeAll, expect, test } from 'vitest'

import { slowRule as rule, writeHostile } from './support/neighbours/slow-patterns.ts'
import { draftPolicy, putInForce } from './support/policies/enforcing.ts'
import { begin, beginRaw, hiddenPromptFor } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// Each pattern is accepted on its own, and together they are slow on the texts sent here. The organization that sends such a text
// waits for the search; calls of other organizations must not.

const stack = useStack({ processes: 1 })

let callNeighbour: () => Promise<number>
beforeAll(async () => {
  const [neighbour] = await createTenants(stack().service, 1)
  const target = { baseUrl: stack().description.base_url, credential: neighbour?.project_key ?? '' }
  callNeighbour = async () =>
    (await begin(target, { format: 'messages', model: 'claude-scripted' }).answer).status
})

/** How long the slowest call of another organization took while something was done, as a share of the time that took. */
async function shareOfNeighbour(attack: () => Promise<unknown>): Promise<number> {
  let isOver = false
  let longestMs = 0
  const neighbour = (async () => {
    while (!isOver) {
      const startedMs = performance.now()
      expect(await callNeighbour()).toBe(200)
      longestMs = Math.max(longestMs, performance.now() - startedMs)
      await sleep(5)
    }
  })()
  const startedMs = performance.now()
  await attack()
  const tookMs = performance.now() - startedMs
  isOver = true
  await neighbour
  console.log(`took ${tookMs.toFixed(0)} ms; the neighbour waited up to ${longestMs.toFixed(0)} ms`)
  return longestMs / tookMs
}

/** Where the neighbour has to wait for it, the share is about 1. A busy machine may hold up a call in one try, but not in five. */
async function expectNoWait(attack: () => Promise<unknown>) {
  let lowest = Infinity
  for (let attempt = 0; attempt < 5 && lowest > 0.3; attempt++) {
    lowest = Math.min(lowest, await shareOfNeighbour(attack))
  }
  expect(lowest).toBeLessThan(0.3)
}

async function send(path: string, credential: string, body: object) {
  const target = { baseUrl: stack().description.base_url, credential }
  const { status } = await beginRaw(target, { path, payload: JSON.stringify(body) }).answer
  // A trial that takes longer than its deadline is given up.
  expect([200, 503]).toContain(status)
}

const chat = (messages: object[]) =>
  send('/v1/messages', stack().description.project_key, {
    model: 'claude-scripted',
    max_tokens: 4000,
    stream: true,
    messages,
  })

const user = (content: string) => ({ role: 'user', content })

test('a request under a monitoring policy', async () => {
  await putInForce(stack(), { rule, mode: 'monitoring', direction: 'request' })
  await expectNoWait(() => chat([user(writeHostile())]))
})

test('an answer, and an earlier answer, under an enforcing policy', async () => {
  await putInForce(stack(), { rule, direction: 'response' })
  await expectNoWait(() => chat([user(hiddenPromptFor({ text: writeHostile() }))]))
  const earlier = () => ({ role: 'assistant', content: writeHostile() })
  await expectNoWait(() => chat([user('Hello.'), earlier(), user('Go on.')]))
})

test('the trial of a draft', async () => {
  const { id } = await draftPolicy(stack(), { rule })
  const path = `/v1/organization/policies/${id}/evaluate`
  const direction = 'response'
  await expectNoWait(() =>
    send(path, stack().description.admin_key, {
      texts: [0, 1].map(() => ({ text: writeHostile(), direction })),
    }),
  )
})
