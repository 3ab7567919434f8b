import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import Anthropic from '@anthropic-ai/sdk'
import { whyNoLlama } from '@gatehouse/tools/llama-upstream/start'
import OpenAI from 'openai'
import { describe, expect, test, vi } from 'vitest'

import { openAccount, computeAmount } from './support/credits/money.ts'
import { putInForce } from './support/policies/enforcing.ts'
import { ask, begin, type Format, formats } from './support/streams/call.ts'
import { textOf } from './support/streams/text.ts'
import { useStack } from './support/use-stack.ts'

// A real language model behind the gateway: a tiny, deterministic one that writes stories.

const reason = whyNoLlama()
const model = 'stories'
const prompt = 'Once upon a time'
const maxTokens = 60

type Story = {
  text: string
  /** When each piece arrived, in milliseconds after the request. */
  arrivals: number[]
  input: number
  output: number
  isCut: boolean
}

type Clients = { anthropic: Anthropic; openai: OpenAI }

function createArrivals() {
  const startedAt = performance.now()
  const arrivals: number[] = []
  return { arrivals, note: () => void arrivals.push(performance.now() - startedAt) }
}

async function byMessages({ anthropic }: Clients): Promise<Story> {
  const { arrivals, note } = createArrivals()
  const messages = [{ role: 'user' as const, content: prompt }]
  const stream = anthropic.messages.stream({ model, max_tokens: maxTokens, messages })
  stream.on('text', note)
  const { usage, stop_reason } = await stream.finalMessage()
  return {
    text: await stream.finalText(),
    arrivals,
    isCut: stop_reason === 'max_tokens',
    input: usage.input_tokens,
    output: usage.output_tokens,
  }
}

async function byResponses({ openai }: Clients): Promise<Story> {
  const { arrivals, note } = createArrivals()
  const request = { model, input: prompt, max_output_tokens: maxTokens }
  const stream = openai.responses.stream(request)
  stream.on('response.output_text.delta', note)
  const response = await stream.finalResponse()
  return {
    text: response.output_text,
    arrivals,
    isCut: response.status === 'incomplete',
    input: response.usage?.input_tokens ?? 0,
    output: response.usage?.output_tokens ?? 0,
  }
}

async function byChat({ openai }: Clients): Promise<Story> {
  const { arrivals, note } = createArrivals()
  const stream = openai.chat.completions.stream({
    model,
    max_completion_tokens: maxTokens,
    stream_options: { include_usage: true },
    messages: [{ role: 'user', content: prompt }],
  })
  stream.on('content', note)
  const { choices, usage } = await stream.finalChatCompletion()
  return {
    text: choices[0]?.message.content ?? '',
    arrivals,
    input: usage?.prompt_tokens ?? 0,
    output: usage?.completion_tokens ?? 0,
    isCut: choices[0]?.finish_reason === 'length',
  }
}

const ways = formats.flatMap((format) =>
  [true, false].map((isStreamed) => ({ format, isStreamed })),
)

describe.skipIf(reason)(`a story from a real model ${reason ?? ''}`, () => {
  const stack = useStack({ hasLlama: !reason })
  const connect = (): Clients => {
    const { base_url, project_key: apiKey } = stack().description
    return {
      anthropic: new Anthropic({ baseURL: base_url, apiKey, maxRetries: 0 }),
      openai: new OpenAI({ baseURL: `${base_url}/v1`, apiKey, maxRetries: 0 }),
    }
  }

  /** The answer of the engine itself, without the gateway. */
  async function askDirectly(): Promise<{ text: string; input: number; output: number }> {
    const file = JSON.parse(await readFile(stack().modelsFile, 'utf8')) as {
      upstreams: { llama: { base_url: string } }
    }
    const direct = new OpenAI({ baseURL: file.upstreams.llama.base_url, apiKey: 'none' })
    const { choices, usage } = await direct.chat.completions.create({
      model,
      max_completion_tokens: maxTokens,
      messages: [{ role: 'user', content: prompt }],
    })
    return {
      text: choices[0]?.message.content ?? '',
      input: usage?.prompt_tokens ?? 0,
      output: usage?.completion_tokens ?? 0,
    }
  }

  test.each([
    ['Messages', byMessages],
    ['Responses', byResponses],
    ['Chat Completions', byChat],
  ] as const)('%s: streamed token by token, with the usage of the engine', async (_, read) => {
    const direct = await askDirectly()
    // The model is fast: on a busy machine a whole story may arrive at once, but not every one.
    let spreadMs = 0
    for (let attempt = 0; attempt < 10 && spreadMs <= 5; attempt++) {
      const story = await read(connect())
      expect(story.text).toBe(direct.text)
      expect([story.input, story.output]).toEqual([direct.input, direct.output])
      expect([story.output, story.isCut]).toEqual([maxTokens, true])
      // One piece for nearly every token; some tokens are parts of a character.
      expect(story.arrivals.length).toBeGreaterThan(maxTokens * 0.7)
      spreadMs = story.arrivals.at(-1)! - story.arrivals[0]!
    }
    expect(spreadMs, 'every story arrived at once').toBeGreaterThan(5)
  })

  test('a plain answer is the same story', async () => {
    const direct = await askDirectly()
    const { content, usage } = await connect().anthropic.messages.create({
      model,
      max_tokens: maxTokens,
      messages: [{ role: 'user', content: prompt }],
    })
    expect(content).toMatchObject([{ type: 'text', text: direct.text }])
    expect([usage.input_tokens, usage.output_tokens]).toEqual([direct.input, direct.output])
  })

  test('a rule on answers cuts the story where it matches, streamed or plain', async () => {
    const { text } = await askDirectly()
    const name = 'Lily'
    const cut = text.indexOf(name)
    expect(cut).toBeGreaterThan(0)
    await putInForce(stack(), { rule: `cel: text.contains("${name}")`, direction: 'response' })
    const { base_url: baseUrl, project_key: credential } = stack().description
    for (const { format, isStreamed } of ways) {
      const messages = [{ role: 'user', content: prompt }]
      const asked = format === 'responses' ? { input: prompt } : { messages }
      const body = { ...asked, [tokensMember[format]]: maxTokens }
      const answer = await ask({ baseUrl, credential }, { format, model, isStreamed, body })
      expect(answer.text).toContain('policy_blocked')
      expect(answer.text).not.toContain(name)
      if (!isStreamed) expect(answer.status).toBe(400)
      // The pieces stay whole: the space before the name may be one with it.
      else expect(textOf(answer.text).trimEnd()).toBe(text.slice(0, cut).trimEnd())
    }
  })

  test('count_tokens uses the counter of the engine', async () => {
    const direct = await askDirectly()
    const messages = [{ role: 'user' as const, content: prompt }]
    const { input_tokens } = await connect().anthropic.messages.countTokens({ model, messages })
    expect(input_tokens).toBe(direct.input)
  })

  test('a request that the model cannot handle is refused before the model is called', async () => {
    const source = { type: 'url' as const, url: 'https://example.com/a.png' }
    const content = [{ type: 'image' as const, source }]
    const request = { model, max_tokens: 5, messages: [{ role: 'user' as const, content }] }
    await expect(connect().anthropic.messages.create(request)).rejects.toThrow(
      "The model 'stories' cannot read images.",
    )
  })

  test.each(ways)(
    '$format, streamed: $isStreamed: a caller who hangs up midway pays for what was produced',
    async ({ format, isStreamed }) => {
      const account = await openAccount(stack(), `Leaving ${format} ${isStreamed}`, 1_000_000)
      const body = { [tokensMember[format]]: 250 }
      // The story is short and machines differ in speed: each attempt hangs up later, until one does so midway.
      for (let waitMs = 10; ; waitMs += 10) {
        expect(waitMs, 'no hang-up was midway').toBeLessThan(1000)
        const { length: before } = await account.calls()
        const call = begin(account.target, { format, model, isStreamed, body })
        await sleep(waitMs)
        call.hangUp()
        const isCharged = async () => (await account.calls()).length > before
        const wasReceived = await vi
          .waitUntil(isCharged, { timeout: 5000, interval: 20 })
          .catch(() => false)
        // On a busy machine the caller may be gone before the gateway has its request.
        if (!wasReceived) continue
        const [entry] = await account.calls()
        expect(BigInt(entry!.amount)).toBe(computeAmount(entry!))
        const produced = entry!.output_tokens ?? 0
        expect(produced).toBeLessThanOrEqual(300)
        // A stream is cut; a plain answer goes on to its end.
        const source = isStreamed ? 'local-estimate' : 'upstream'
        if (produced === 0 || entry!.usage_source !== source) continue
        expect([entry!.kind, entry!.amount > 0]).toEqual(['usage', true])
        return
      }
    },
  )
})

const tokensMember = {
  messages: 'max_tokens',
  chat: 'max_completion_tokens',
  responses: 'max_output_tokens',
} as const satisfies Record<Format, string>
