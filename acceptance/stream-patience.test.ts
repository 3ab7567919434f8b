import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import Anthropic from '@anthropic-ai/sdk'
import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import OpenAI from 'openai'
import { afterAll, describe, expect, test } from 'vitest'

import { begin, eventsOf, type Format, formats, promptFor } from './support/streams/call.ts'
import { beginAndNeverRead, residentMegabytes, startFlood } from './support/streams/flood.ts'
import { catalogueOf } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// Callers that do not read, and upstreams that go silent. The tests run concurrently; how long the service waits is
// compared with a timer of the same length that runs here at the same time.

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

/** How long a timer of this length really takes at the moment. */
async function timeTimer(ms: number): Promise<number> {
  const startedAt = performance.now()
  await sleep(ms)
  return performance.now() - startedAt
}

/** Whether the service has not closed its side, which a client that does not read cannot notice. */
async function isConnected({ localPort = 0, remotePort = 0 }: Socket): Promise<boolean> {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, '0')
  const connections = await readFile('/proc/net/tcp', 'utf8')
  const established = `\\w+:${hex(remotePort)} \\w+:${hex(localPort)} 01 `
  return new RegExp(`^ *\\d+: ${established}`, 'm').test(connections)
}

const words = 'one two three four five six'
const silentMs = 16_500
const script = { text: words, stallAfter: { pieces: 3, ms: silentMs } }

describe.concurrent('slow callers and silent upstreams', () => {
  test('a caller who reads nothing slows the upstream down, costs no memory, and is cut off after 30 s', async () => {
    const { base_url: baseUrl, project_key: credential } = stack().description
    const processId = stack().apis[0]?.child.pid
    // Warm-up: the memory that the first stream needs is not counted.
    await begin({ baseUrl, credential }, { format: 'messages', model: modelOf.messages }).answer
    const before = await residentMegabytes(processId)
    const startedAt = performance.now()
    const socket = beginAndNeverRead(
      { baseUrl, credential },
      { format: 'messages', model: 'flood' },
    )
    const timer = timeTimer(30_000)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    let most = 0
    for (let sample = 0; sample < 50; sample++) {
      await sleep(100)
      most = Math.max(most, await residentMegabytes(processId))
    }
    const sentMegabytes = flood.seen.sentBytes / 1024 / 1024
    console.log(`grew by ${(most - before).toFixed(1)} MB, took ${sentMegabytes.toFixed(1)} MB`)
    expect(sentMegabytes).toBeGreaterThan(0)
    expect(sentMegabytes).toBeLessThan(30)
    expect(most - before).toBeLessThan(80)
    expect(flood.seen.closedAt).toBe(0)

    await expect
      .poll(() => flood.seen.closedAt, { timeout: 180_000, interval: 50 })
      .toBeGreaterThan(0)
    const ratio = (flood.seen.closedAt - startedAt) / (await timer)
    console.log(`cut off after ${ratio.toFixed(3)} times a timer of 30 s`)
    expect(ratio).toBeGreaterThan(0.97)
    expect(ratio).toBeLessThan(1.3)
    expect(flood.seen.sentBytes / 1024 / 1024).toBeLessThan(30)
    socket.resume()
    await closed
  })

  test('a caller who reads none of its plain answers is cut off within 30 s', async () => {
    const { hostname, port } = new URL(stack().description.base_url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined).pause()
    socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(30))
    await sleep(1000)
    expect(await isConnected(socket)).toBe(true)
    const timer = timeTimer(29_000)
    const startedAt = performance.now()
    await expect.poll(() => isConnected(socket), { timeout: 180_000, interval: 50 }).toBe(false)
    const ratio = (performance.now() - startedAt) / (await timer)
    console.log(`plain answers cut off after ${ratio.toFixed(3)} times a timer of 29 s`)
    expect(ratio).toBeGreaterThan(0.45)
    expect(ratio).toBeLessThan(1.1)
    socket.destroy()
  })

  test.each(formats)(
    '%s: while an upstream is silent, the caller gets a ping after 15 s',
    async (format) => {
      const { base_url: baseUrl } = stack().description
      const [tenant] = await createTenants(stack().service, 1)
      const call = begin(
        { baseUrl, credential: tenant?.project_key ?? '' },
        {
          format,
          model: modelOf[format],
          script,
        },
      )
      await call.responseStarted
      const timer = timeTimer(15_000)
      const answer = await call.answer
      const ping = format === 'messages' ? 'event: ping\n' : ': ping\n\n'
      const beganAt = answer.chunks[0]?.atMs ?? 0
      const pings = answer.chunks.filter(
        ({ text, atMs }) => text.startsWith(ping) && atMs - beganAt > 10_000,
      )
      expect(pings).toHaveLength(1)
      const ratio = ((pings[0]?.atMs ?? 0) - beganAt) / (await timer)
      console.log(`a ping after ${ratio.toFixed(3)} times a timer of 15 s`)
      expect(Math.abs(ratio - 1)).toBeLessThan(1 / 15)
      expect(eventsOf(answer.text).length).toBeGreaterThan(6)
      expect(answer.text).toMatch(/message_stop|\[DONE\]|response\.completed/)
    },
  )

  test('the official clients read a stream with pings without an error', async () => {
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
