import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import Anthropic from '@anthropic-ai/sdk'
import { stackModels } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'

import { begin, eventsOf, type Format, formats, promptFor } from './support/streams/call.ts'
import { beginAndNeverRead, residentMegabytes, startFlood } from './support/streams/flood.ts'
import { catalogueOf } from './support/streams/models.ts'
import { useStack } from './support/use-stack.ts'

// Callers that do not read, and upstreams that go silent. A slow machine makes deadlines late, so how late they are is compared
// with a timer that runs here at the same time; early they must never be, measured from before they can have begun.

// All of them wait for half a minute.
vi.setConfig({ maxConcurrency: 6 })

const flood = await startFlood(100 * 1024 * 1024)
afterAll(flood.stop)

const stack = useStack({
  // The second one serves only the caller whose memory is measured.
  processes: 2,
  models: (urls) => {
    const usual = stackModels(urls)
    const flooded = catalogueOf({ flood: [{ url: flood.url }] })
    return {
      upstreams: { ...usual.upstreams, ...flooded.upstreams },
      models: [...usual.models, ...flooded.models],
    }
  },
})

let keys: string[]
beforeAll(async () => {
  // Each test has its own: together they exceed the slots of one.
  const tenants = await createTenants(stack().service, formats.length + 2)
  keys = tenants.map(({ project_key }) => project_key)
})
const keyOf = (format: Format) => keys[formats.indexOf(format)] ?? ''

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

/** How many times longer than such a timer something may take. */
const lateMost = 1.3

/** The service's side of a connection, which a client that does not read cannot notice: its unread bytes while it is open. */
async function unreadBytes({ localPort = 0, remotePort = 0 }: Socket): Promise<number | undefined> {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, '0')
  const connections = await readFile('/proc/net/tcp', 'utf8')
  const established = `\\w+:${hex(remotePort)} \\w+:${hex(localPort)} 01 (\\w+):`
  const found = new RegExp(`^ *\\d+: ${established}`, 'm').exec(connections)?.[1]
  return found === undefined ? undefined : Number.parseInt(found, 16)
}

/** Waits until the service can write nothing more. */
async function untilStuck(socket: Socket) {
  let last: number | undefined
  const isStuck = async () => {
    const before = last
    last = await unreadBytes(socket)
    return last !== undefined && last > 0 && last === before
  }
  await expect.poll(isStuck, { timeout: 60_000, interval: 500 }).toBe(true)
}

const words = 'one two three four five six'
const pingMs = 15_000
/** Far enough from the first ping and from the second. */
const silentMs = 1.5 * pingMs
const script = { text: words, stallAfter: { pieces: 3, ms: silentMs } }

describe.concurrent('slow callers and silent upstreams', () => {
  test('a caller who reads nothing slows the upstream down, costs no memory, and is cut off after 30 s', async () => {
    const target = { baseUrl: stack().description.base_urls[1] ?? '', credential: keys.at(-1)! }
    const processId = stack().apis[1]?.child.pid
    // Warm-up: the memory that the first stream needs is not counted.
    await begin(target, { format: 'messages', model: modelOf.messages }).answer
    const before = await residentMegabytes(processId)
    const startedAt = performance.now()
    const socket = beginAndNeverRead(target, { format: 'messages', model: 'flood' })
    const timer = timeTimer(30_000)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    await expect.poll(() => flood.seen.sentBytes, { timeout: 60_000 }).toBeGreaterThan(0)
    let most = 0
    for (let sample = 0; sample < 50; sample++) {
      await sleep(100)
      most = Math.max(most, await residentMegabytes(processId))
    }
    const sentMegabytes = flood.seen.sentBytes / 1024 / 1024
    console.log(`grew by ${(most - before).toFixed(1)} MB, took ${sentMegabytes.toFixed(1)} MB`)
    expect(sentMegabytes).toBeLessThan(30)
    expect(most - before).toBeLessThan(80)

    await expect
      .poll(() => flood.seen.closedAt, { timeout: 180_000, interval: 50 })
      .toBeGreaterThan(0)
    const { lastSentAt, closedAt, sentBytes } = flood.seen
    const ratio = (closedAt - lastSentAt) / (await timer)
    console.log(`cut off after ${ratio.toFixed(3)} times a timer of 30 s`)
    expect(closedAt - startedAt).toBeGreaterThan(29_900)
    expect(ratio).toBeLessThan(lateMost)
    expect(sentBytes / 1024 / 1024).toBeLessThan(30)
    socket.resume()
    await closed
  })

  test('a caller who reads none of its plain answers is cut off within 30 s', async () => {
    const { hostname, port } = new URL(stack().description.base_url)
    const startedAt = performance.now()
    const socket = connect(Number(port), hostname)
    socket.on('error', () => undefined).pause()
    socket.write('GET /openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(30))
    await untilStuck(socket)
    const stuckAt = performance.now()
    const timer = timeTimer(30_000)
    await expect.poll(() => unreadBytes(socket), { timeout: 180_000, interval: 50 }).toBeUndefined()
    const closedAt = performance.now()
    const ratio = (closedAt - stuckAt) / (await timer)
    console.log(`plain answers cut off after ${ratio.toFixed(3)} times a timer of 30 s`)
    expect(closedAt - startedAt).toBeGreaterThan(14_900)
    expect(ratio).toBeLessThan(lateMost)
    socket.destroy()
  })

  test.each(formats)(
    '%s: while an upstream is silent, the caller gets a ping after 15 s',
    async (format) => {
      const { base_url: baseUrl } = stack().description
      const target = { baseUrl, credential: keyOf(format) }
      const call = begin(target, { format, model: modelOf[format], script })
      await call.responseStarted
      const timer = timeTimer(pingMs)
      const { chunks, text } = await call.answer
      const ping = format === 'messages' ? 'event: ping\n' : ': ping\n\n'
      // Translated streams have a ping at their start too.
      const beganAt = chunks[0]?.atMs ?? 0
      const pings = chunks.filter(
        (chunk) => chunk.text.startsWith(ping) && chunk.atMs - beganAt > 10_000,
      )
      expect(pings).toHaveLength(1)
      const pingAt = pings[0]!.atMs
      const lastBefore = chunks.findLast(({ atMs }) => atMs < pingAt)?.atMs ?? 0
      const ratio = (pingAt - lastBefore) / (await timer)
      console.log(`a ping after ${ratio.toFixed(3)} times a timer of 15 s`)
      expect(pingAt).toBeGreaterThan(pingMs - 100)
      expect(ratio).toBeLessThan(lateMost)
      expect(eventsOf(text).length).toBeGreaterThan(6)
      expect(text).toMatch(/message_stop|\[DONE\]|response\.completed/)
    },
  )

  test('the official clients read a stream with pings without an error', async () => {
    const { base_url } = stack().description
    const apiKey = keys.at(-2)!
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
