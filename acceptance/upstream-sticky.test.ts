import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { afterAll, beforeEach, expect, test } from 'vitest'

import { ask, type Format, promptFor } from './support/stream-call.ts'
import { catalogueOf } from './support/stream-models.ts'
import { failAlways, resetUpstream, stateOf } from './support/stream-upstream.ts'
import { useStack } from './support/use-stack.ts'

// Only the upstream that made opaque state can read it: a conversation that carries some stays with it.

const [first, second] = await Promise.all([startScriptedUpstream(), startScriptedUpstream()])
afterAll(() => Promise.all([first.stop(), second.stop()]))

/** It works again. Its state is made of the number of the call: the second one's must not be the first one's. */
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

/** The members of a request that say what was said so far, and how to go on after an answer. */
const speech: Record<Format, { opening: Json; goOn: (answer: Json) => Json }> = {
  messages: {
    opening: { messages: [user], ...thinking },
    goOn: ({ content }) => ({
      messages: [user, { role: 'assistant', content }, user],
      ...thinking,
    }),
  },
  chat: {
    opening: { messages: [user] },
    goOn: ({ choices }) => ({
      messages: [user, (choices as [{ message: Json }])[0].message, user],
    }),
  },
  responses: {
    opening: { input: [user], include: ['reasoning.encrypted_content'], store: false },
    goOn: ({ output }) => ({
      input: [user, ...(output as Json[]), user],
      ...{ include: ['reasoning.encrypted_content'], store: false },
    }),
  },
}

async function send(process: number, wish: { format: Format; model: string; body: Json }) {
  const { base_urls, project_key } = stack().description
  const target = { baseUrl: base_urls[process] ?? '', credential: project_key }
  const before = [await stateOf(first.url), await stateOf(second.url)]
  const heard = await ask(target, { ...wish, isStreamed: false })
  const after = [await stateOf(first.url), await stateOf(second.url)]
  return {
    ...{ status: heard.status, json: JSON.parse(heard.text) as Json },
    asked: after.map(({ requests }, place) => requests - (before[place]?.requests ?? 0)),
  }
}

test.each([
  ['messages', 'messages'],
  ['chat', 'messages'],
  ['responses', 'messages'],
  ['responses', 'responses'],
  ['messages', 'responses'],
] as const)(
  '%s by %s: what the second upstream began goes back to it from any process, and nowhere else',
  async (format, upstreamFormat) => {
    const wish = { format, model: `${format}-by-${upstreamFormat}` }
    const { opening, goOn } = speech[format]
    await failAlways(first.url, { status: 429 })
    const begun = await send(0, { ...wish, body: opening })
    expect(begun).toMatchObject({ status: 200, asked: [1, 1] })
    await repair()

    for (const process of [0, 1]) {
      const went = await send(process, { ...wish, body: goOn(begun.json) })
      expect(went).toMatchObject({ status: 200, asked: [0, 1] })
      const fresh = await send(process, { ...wish, body: opening })
      expect(fresh).toMatchObject({ status: 200, asked: [1, 0] })
    }
    await failAlways(second.url, { status: 401 })
    for (const process of [0, 1]) {
      const refused = await send(process, { ...wish, body: goOn(begun.json) })
      expect(refused).toMatchObject({ status: 502, asked: [0, 1] })
    }
  },
)

test('what the first upstream began never goes to the second, even while the first fails', async () => {
  const wish = { format: 'messages', model: 'messages-by-messages' } as const
  const { opening, goOn } = speech.messages
  const begun = await send(0, { ...wish, body: opening })
  expect(begun).toMatchObject({ status: 200, asked: [1, 0] })
  await failAlways(first.url, { status: 429 })
  const refused = await send(1, { ...wish, body: goOn(begun.json) })
  expect(refused).toMatchObject({ status: 529, asked: [1, 0] })
})
