import { setTimeout as sleep } from 'node:timers/promises'

import Anthropic from '@anthropic-ai/sdk'
import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import OpenAI from 'openai'
import { afterAll, describe, expect, test } from 'vitest'

import { begin, eventsOf, type Format, formats, promptFor } from './support/stream-call.ts'
import { beginAndNeverRead, residentMegabytes, startFlood } from './support/stream-flood.ts'
import { catalogueOf } from './support/stream-models.ts'
import { useStack } from './support/use-stack.ts'

// Callers who do not read, and upstreams that do not write. The tests wait side by side.

const flood = await startFlood(100 * 1024 * 1024)
afterAll(flood.stop)

const stack = useStack({
  models: (urls) => {
    const usual = stackModels(urls)
    const flooded = catalogueOf({ flood: [{ url: flood.url }] })
    return {
      upstreams: { ...usual.upstreams, ...flooded.upstreams },
      models: [...usual.models, ...flooded.models],
    }
  },
})

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

const words = 'one two three four five six'
const silentMs = 16_500
const script = { text: words, stallAfter: { pieces: 3, ms: silentMs } }

describe.concurrent('patience', { timeout: 60_000 }, () => {
  test('a caller who reads nothing holds the upstream back, costs no memory, and is cut after 30 s', async () => {
    const { base_url: baseUrl, project_key: credential } = stack().description
    const processId = stack().apis[0]?.child.pid
    // Warm: what a first stream makes the process load is not counted.
    await begin({ baseUrl, credential }, { format: 'messages', model: modelOf.messages }).heard
    const before = await residentMegabytes(processId)
    const startedAt = performance.now()
    const socket = beginAndNeverRead(
      { baseUrl, credential },
      { format: 'messages', model: 'flood' },
    )
    const closed = new Promise((resolve) => socket.once('close', resolve))
    let most = 0
    for (let looked = 0; looked < 50; looked++) {
      await sleep(100)
      most = Math.max(most, await residentMegabytes(processId))
    }
    const sentMegabytes = flood.seen.sentBytes / 1024 / 1024
    console.log(`grew by ${(most - before).toFixed(1)} MB, took ${sentMegabytes.toFixed(1)} MB`)
    expect(sentMegabytes).toBeGreaterThan(0)
    expect(sentMegabytes).toBeLessThan(30)
    expect(most - before).toBeLessThan(40)
    expect(flood.seen.letGoAt).toBe(0)

    await expect
      .poll(() => flood.seen.letGoAt, { timeout: 40_000, interval: 50 })
      .toBeGreaterThan(0)
    const cutAfterMs = flood.seen.letGoAt - startedAt
    expect(cutAfterMs).toBeGreaterThan(29_000)
    expect(cutAfterMs).toBeLessThan(33_000)
    expect(flood.seen.sentBytes / 1024 / 1024).toBeLessThan(30)
    socket.resume()
    await closed
  })

  test.each(formats)(
    '%s: a silent upstream is covered up by something that means nothing',
    async (format) => {
      const { base_url: baseUrl } = stack().description
      const [tenant] = await createTenants(stack().service, 1)
      const call = begin(
        { baseUrl, credential: tenant?.project_key ?? '' },
        {
          ...{ format, model: modelOf[format], script },
        },
      )
      const heard = await call.heard
      const ping = format === 'messages' ? 'event: ping\n' : ': ping\n\n'
      const beganAt = heard.chunks[0]?.atMs ?? 0
      const pings = heard.chunks.filter(
        ({ text, atMs }) => text.startsWith(ping) && atMs - beganAt > 10_000,
      )
      expect(pings).toHaveLength(1)
      expect(Math.abs((pings[0]?.atMs ?? 0) - beganAt - 15_000)).toBeLessThan(1000)
      expect(eventsOf(heard.text).length).toBeGreaterThan(6)
      expect(heard.text).toMatch(/message_stop|\[DONE\]|response\.completed/)
    },
  )

  test('the official clients do not mind', async () => {
    const { base_url, project_key: apiKey } = stack().description
    const openai = new OpenAI({ baseURL: `${base_url}/v1`, apiKey, maxRetries: 0 })
    const anthropic = new Anthropic({ baseURL: base_url, apiKey, maxRetries: 0 })
    const messages = [{ role: 'user' as const, content: promptFor(script) }]
    const [message, completion, response] = await Promise.all([
      anthropic.messages.stream({ model: modelOf.messages, max_tokens: 100, messages }).finalText(),
      openai.chat.completions.stream({ model: modelOf.chat, messages }).finalContent(),
      openai.responses
        .stream({ model: modelOf.responses, input: promptFor(script) })
        .finalResponse(),
    ])
    expect([message, completion, response.output_text]).toEqual([words, words, words])
  })
})
