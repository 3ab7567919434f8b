import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { afterAll, beforeEach, expect, test } from 'vitest'

import { ask, type Format, promptFor } from './support/streams/call.ts'
import { catalogueOf } from './support/streams/models.ts'
import { failAlways, resetUpstream, stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// Only the upstream that made opaque state can read it, so a conversation that contains some stays with that upstream.

const [first, second] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()])
afterAll(() => Promise.all([first.stop(), second.stop()]))

/** Resets both upstreams. Opaque state contains the number of the call, so the second upstream counts from 20. */
async function repair() {
  await Promise.all([resetUpstream(first.url), resetUpstream(second.url)])
  for (let count = 0; count < 20; count++) await fetch(`${second.url}/v1/models`)
}
beforeEach(repair)

const pairOf = (format: Format) => [
  { url: first.url, format },
  { url: second.url, format },
]
const stack = useStack({
  processes: 2,
  models: () =>
    catalogueOf({
      'messages-by-messages': pairOf('messages'),
      'chat-by-messages': pairOf('messages'),
      'responses-by-messages': pairOf('messages'),
      'responses-by-responses': pairOf('responses'),
      'messages-by-responses': pairOf('responses'),
    }),
})

type Json = Record<string, unknown>

const prompt = promptFor({ thinking: 'A thought of its own.', text: 'Well.' })
const user = { role: 'user', content: prompt }

const thinking = { max_tokens: 5000, thinking: { type: 'enabled', budget_tokens: 2000 } }

/** The members of a request that begins a conversation, and of one that continues it after an answer. */
const bodies: Record<Format, { opening: Json; continueAfter: (answer: Json) => Json }> = {
  messages: {
    opening: { messages: [user], ...thinking },
    continueAfter: ({ content }) => ({
      messages: [user, { role: 'assistant', content }, user],
      ...thinking,
    }),
  },
  chat: {
    opening: { messages: [user] },
    continueAfter: ({ choices }) => ({
      messages: [user, (choices as [{ message: Json }])[0].message, user],
    }),
  },
  responses: {
    opening: { input: [user], include: ['reasoning.encrypted_content'], store: false },
    continueAfter: ({ output }) => ({
      input: [user, ...(output as Json[]), user],
      include: ['reasoning.encrypted_content'],
      store: false,
    }),
  },
}

async function send(process: number, request: { format: Format; model: string; body: Json }) {
  const { base_urls, project_key } = stack().description
  const target = { baseUrl: base_urls[process] ?? '', credential: project_key }
  const before = [await stateOf(first.url), await stateOf(second.url)]
  const answer = await ask(target, { ...request, isStreamed: false })
  const after = [await stateOf(first.url), await stateOf(second.url)]
  return {
    status: answer.status,
    json: JSON.parse(answer.text) as Json,
    calls: after.map(({ requests }, index) => requests - (before[index]?.requests ?? 0)),
  }
}

test.each([
  ['messages', 'messages'],
  ['chat', 'messages'],
  ['responses', 'messages'],
  ['responses', 'responses'],
  ['messages', 'responses'],
] as const)(
  '%s by %s: a conversation begun by the second upstream returns only to it, from any process',
  async (format, upstreamFormat) => {
    const request = { format, model: `${format}-by-${upstreamFormat}` }
    const { opening, continueAfter } = bodies[format]
    await failAlways(first.url, { status: 429 })
    const begun = await send(0, { ...request, body: opening })
    expect(begun).toMatchObject({ status: 200, calls: [1, 1] })
    await repair()

    for (const process of [0, 1]) {
      const went = await send(process, { ...request, body: continueAfter(begun.json) })
      expect(went).toMatchObject({ status: 200, calls: [0, 1] })
      const fresh = await send(process, { ...request, body: opening })
      expect(fresh).toMatchObject({ status: 200, calls: [1, 0] })
    }
    await failAlways(second.url, { status: 401 })
    for (const process of [0, 1]) {
      const refused = await send(process, { ...request, body: continueAfter(begun.json) })
      expect(refused).toMatchObject({ status: 502, calls: [0, 1] })
    }
  },
)

test('a conversation begun by the first upstream never goes to the second, even while the first fails', async () => {
  const request = { format: 'messages', model: 'messages-by-messages' } as const
  const { opening, continueAfter } = bodies.messages
  const begun = await send(0, { ...request, body: opening })
  expect(begun).toMatchObject({ status: 200, calls: [1, 0] })
  await failAlways(first.url, { status: 429 })
  const refused = await send(1, { ...request, body: continueAfter(begun.json) })
  expect(refused).toMatchObject({ status: 529, calls: [1, 0] })
})
