import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'

import Anthropic from '@anthropic-ai/sdk'
import { whyNoLlama } from '@gatehouse/tools/llama-upstream/start'
import OpenAI from 'openai'
import { describe, expect, test } from 'vitest'

import { openAccount, recomputed } from './support/money.ts'
import { begin, formats } from './support/stream-call.ts'
import { useStack } from './support/use-stack.ts'

// A real language model behind the gateway: a tiny one that writes stories, the same at every run.

const reason = whyNoLlama()
const model = 'stories'
const prompt = 'Once upon a time'
const maxTokens = 60

type Told = {
  text: string
  /** When each piece came, in milliseconds after the first. */
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

async function byMessages({ anthropic }: Clients): Promise<Told> {
  const { arrivals, note } = createArrivals()
  const messages = [{ role: 'user' as const, content: prompt }]
  const stream = anthropic.messages.stream({ model, max_tokens: maxTokens, messages })
  stream.on('text', note)
  const { usage, stop_reason } = await stream.finalMessage()
  return {
    ...{ text: await stream.finalText(), arrivals, isCut: stop_reason === 'max_tokens' },
    ...{ input: usage.input_tokens, output: usage.output_tokens },
  }
}

async function byResponses({ openai }: Clients): Promise<Told> {
  const { arrivals, note } = createArrivals()
  const request = { model, input: prompt, max_output_tokens: maxTokens }
  const stream = openai.responses.stream(request)
  stream.on('response.output_text.delta', note)
  const response = await stream.finalResponse()
  return {
    ...{ text: response.output_text, arrivals, isCut: response.status === 'incomplete' },
    ...{ input: response.usage?.input_tokens ?? 0, output: response.usage?.output_tokens ?? 0 },
  }
}

async function byChat({ openai }: Clients): Promise<Told> {
  const { arrivals, note } = createArrivals()
  const stream = openai.chat.completions.stream({
    ...{ model, max_completion_tokens: maxTokens, stream_options: { include_usage: true } },
    messages: [{ role: 'user', content: prompt }],
  })
  stream.on('content', note)
  const { choices, usage } = await stream.finalChatCompletion()
  return {
    ...{ text: choices[0]?.message.content ?? '', arrivals },
    ...{ input: usage?.prompt_tokens ?? 0, output: usage?.completion_tokens ?? 0 },
    isCut: choices[0]?.finish_reason === 'length',
  }
}

describe.skipIf(reason)(`a story from a real model ${reason ?? ''}`, () => {
  const stack = useStack({ hasLlama: !reason })
  const connect = (): Clients => {
    const { base_url, project_key: apiKey } = stack().description
    return {
      anthropic: new Anthropic({ baseURL: base_url, apiKey, maxRetries: 0 }),
      openai: new OpenAI({ baseURL: `${base_url}/v1`, apiKey, maxRetries: 0 }),
    }
  }

  /** What the engine itself says, asked without us. */
  async function askDirectly(): Promise<{ text: string; input: number; output: number }> {
    const file = JSON.parse(await readFile(stack().modelsFile, 'utf8')) as {
      upstreams: { llama: { base_url: string } }
    }
    const direct = new OpenAI({ baseURL: file.upstreams.llama.base_url, apiKey: 'none' })
    const { choices, usage } = await direct.chat.completions.create({
      ...{ model, max_completion_tokens: maxTokens },
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
  ] as const)('%s: token by token, with the usage that the engine counted', async (_, tell) => {
    const direct = await askDirectly()
    const told = await tell(connect())
    expect(told.text).toBe(direct.text)
    expect([told.input, told.output]).toEqual([direct.input, direct.output])
    expect([told.output, told.isCut]).toEqual([maxTokens, true])
    // One piece for nearly every token; some tokens are halves of a character.
    expect(told.arrivals.length).toBeGreaterThan(maxTokens * 0.7)
    const [first = 0] = told.arrivals
    expect(told.arrivals.at(-1)! - first, 'everything came at once').toBeGreaterThan(5)
  })

  test('a plain answer is the same story', async () => {
    const direct = await askDirectly()
    const { content, usage } = await connect().anthropic.messages.create({
      ...{ model, max_tokens: maxTokens, messages: [{ role: 'user', content: prompt }] },
    })
    expect(content).toMatchObject([{ type: 'text', text: direct.text }])
    expect([usage.input_tokens, usage.output_tokens]).toEqual([direct.input, direct.output])
  })

  test('its own counter counts for count_tokens', async () => {
    const direct = await askDirectly()
    const messages = [{ role: 'user' as const, content: prompt }]
    const { input_tokens } = await connect().anthropic.messages.countTokens({ model, messages })
    expect(input_tokens).toBe(direct.input)
  })

  test('what it cannot do is refused before it is asked', async () => {
    const source = { type: 'url' as const, url: 'https://example.com/a.png' }
    const content = [{ type: 'image' as const, source }]
    const asked = { model, max_tokens: 5, messages: [{ role: 'user' as const, content }] }
    await expect(connect().anthropic.messages.create(asked)).rejects.toThrow(
      "The model 'stories' cannot read images.",
    )
  })

  const ways = formats.flatMap((format) =>
    [true, false].map((isStreamed) => ({ format, isStreamed })),
  )
  test.each(ways)(
    '$format, streamed: $isStreamed: who leaves in the middle pays for what was told',
    async ({ format, isStreamed }) => {
      const account = await openAccount(stack(), `Leaving ${format} ${isStreamed}`, 1_000_000)
      const body = { [format === 'chat' ? 'max_completion_tokens' : tokensMember[format]]: 250 }
      // The story is short and machines differ: the later somebody leaves, the more was told.
      for (let waitMs = 10; ; waitMs += 10) {
        expect(waitMs, 'nobody left in the middle').toBeLessThan(1000)
        const { length: before } = await account.calls()
        const call = begin(account.target, { format, model, isStreamed, body })
        await sleep(waitMs)
        call.hangUp()
        await expect.poll(() => account.calls(), { timeout: 5000 }).toHaveLength(before + 1)
        const [entry] = await account.calls()
        expect(BigInt(entry!.amount)).toBe(recomputed(entry!))
        const told = entry!.output_tokens ?? 0
        expect(told).toBeLessThanOrEqual(300)
        if (told === 0 || entry!.usage_source !== 'local-estimate') continue
        expect([entry!.kind, entry!.amount > 0]).toEqual(['usage', true])
        return
      }
    },
  )
})

const tokensMember = { messages: 'max_tokens', responses: 'max_output_tokens' } as const
