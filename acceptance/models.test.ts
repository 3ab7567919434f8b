import Anthropic, { NotFoundError as AnthropicNotFound } from '@anthropic-ai/sdk'
import { errorBodies } from '@gatehouse/contract/error-body'
import { stackModels, type UpstreamUrls } from '@gatehouse/tools/stack-models'
import { createTenants } from '@gatehouse/tools/start-stack'
import OpenAI, { NotFoundError as OpenAINotFound } from 'openai'
import { beforeAll, describe, expect, test } from 'vitest'

import { recordedBy } from './support/codex/upstream.ts'
import { useStack } from './support/use-stack.ts'

// The catalogue as clients of both vendors read it, and what they are told when their base URL is wrong.

const greeting = 'Hello from the scripted upstream.'
const slashed = 'vendor/with-slash.v1:latest'

/** The usual catalogue, where one model has further names and another a path for a name. */
function models(urls: UpstreamUrls) {
  const catalogue = stackModels(urls)
  const [claude, ...others] = catalogue.models
  const aliases = ['claude-latest', 'vendor/claude']
  const odd = { ...others[0], id: slashed, display_name: 'Has a slash', aliases: [] }
  return { ...catalogue, models: [{ ...claude, aliases }, ...others, odd] }
}

const stack = useStack({ models })
const baseUrl = () => stack().description.base_url
let key = ''
beforeAll(async () => {
  const [tenant] = await createTenants(stack().service, 1)
  key = tenant?.project_key ?? ''
})

const openai = () => new OpenAI({ baseURL: `${baseUrl()}/v1`, apiKey: key, maxRetries: 0 })
const anthropic = () => new Anthropic({ baseURL: baseUrl(), apiKey: key, maxRetries: 0 })

const ids = ['claude-scripted', 'gpt-scripted', 'chat-scripted', 'responses-scripted', slashed]

async function read(path: string, headers: Record<string, string> = {}) {
  const response = await fetch(`${baseUrl()}${path}`, {
    headers: { authorization: `Bearer ${key}`, ...headers },
    redirect: 'error',
  })
  return { response, json: await response.json() }
}

describe("OpenAI's client", () => {
  test('lists every model once, in the order of the catalogue', async () => {
    const listed: OpenAI.Model[] = []
    for await (const model of openai().models.list()) listed.push(model)
    expect(listed.map(({ id }) => id)).toEqual(ids)
    expect(listed[0]).toMatchObject({
      object: 'model',
      created: Date.UTC(2026, 0) / 1000,
      owned_by: 'scripted',
    })
  })

  test.each(ids)('retrieves %s', async (id) => {
    expect(await openai().models.retrieve(id)).toMatchObject({ id, object: 'model' })
  })

  test('learns of an unknown model as 404 with all four members', async () => {
    const asked = openai().models.retrieve('gpt-nobody')
    const error = await asked.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(OpenAINotFound)
    expect(error).toMatchObject({
      status: 404,
      code: 'unknown_model',
      type: 'invalid_request_error',
      param: 'path.model_id',
      requestID: expect.stringMatching(/^req_/) as string,
    })
  })
})

describe("Anthropic's client", () => {
  test.each([{}, { limit: 1 }, { limit: 1000 }])(
    'lists every model once, whatever page it asks for: %o',
    async (page) => {
      const listed: Anthropic.ModelInfo[] = []
      for await (const model of anthropic().models.list(page)) listed.push(model)
      expect(listed.map(({ id }) => id)).toEqual(ids)
      expect(listed[0]).toMatchObject({
        type: 'model',
        display_name: 'Scripted, speaks Messages',
        created_at: '2026-01-01T00:00:00Z',
      })
    },
  )

  test.each(ids)('retrieves %s', async (id) => {
    expect(await anthropic().models.retrieve(id)).toMatchObject({ id, type: 'model' })
  })

  test('learns of an unknown model as 404', async () => {
    const asked = anthropic().models.retrieve('claude-nobody')
    const error = await asked.catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(AnthropicNotFound)
    expect((error as AnthropicNotFound).requestID).toMatch(/^req_/)
    expect((error as AnthropicNotFound).message).toContain('There is no such model')
  })
})

describe('a model', () => {
  test.each(['claude-latest', 'vendor/claude'])(
    'is found by its alias %s and answers with its id',
    async (alias) => {
      const retrieved = await openai().models.retrieve(alias)
      expect(retrieved.id).toBe('claude-scripted')
      expect(retrieved).toMatchObject({ aliases: ['claude-latest', 'vendor/claude'] })
      expect(await anthropic().models.retrieve(alias)).toMatchObject({ id: 'claude-scripted' })
    },
  )

  test.each(['vendor/claude', slashed])('can be called by the name %s', async (model) => {
    const messages = [{ role: 'user' as const, content: 'Hello.' }]
    const message = await anthropic().messages.create({ model, max_tokens: 50, messages })
    expect(message.content).toMatchObject([{ type: 'text', text: greeting }])
    const completion = await openai().chat.completions.create({ model, messages })
    expect(completion.choices[0]?.message.content).toBe(greeting)
  })

  test('is found when its slash is encoded, and 404 is never a redirect or a page', async () => {
    const { json } = await read(`/v1/models/${encodeURIComponent(slashed)}`)
    expect(json).toMatchObject({ id: slashed, display_name: 'Has a slash' })
    for (const name of ['nobody', 'no%2Fbody', 'CLAUDE-SCRIPTED', 'claude-scripted%20']) {
      const { response, json: body } = await read(`/v1/models/${name}`)
      expect([name, response.status]).toEqual([name, 404])
      expect(errorBodies.openai.parse(body)).toEqual(body)
    }
  })
})

test('the list is the same for every header and query that a client adds', async () => {
  const { json: plain } = await read('/v1/models')
  const version = { 'anthropic-version': '2023-06-01', 'anthropic-beta': 'any' }
  const { json } = await read('/v1/models?limit=1000&after_id=x&beta=true', version)
  expect(json).toEqual(plain)
  expect(plain).toMatchObject({
    object: 'list',
    has_more: false,
    first_id: 'claude-scripted',
    last_id: slashed,
  })
})

test('each read counts as one request, also of what does not exist, and calls no upstream', async () => {
  const [tenant] = await createTenants(stack().service, 1)
  const headers = { authorization: `Bearer ${tenant?.project_key}` }
  const before = (await recordedBy(stack().description.upstream_url)).length
  const remaining: number[] = []
  for (const path of ['/v1/models', '/v1/models/gpt-scripted', '/v1/models/nobody', '/v1/models']) {
    const { response } = await read(path, headers)
    remaining.push(Number(response.headers.get('x-ratelimit-remaining-requests')))
    expect(response.headers.get('x-ratelimit-remaining-tokens')).toBe(
      response.headers.get('x-ratelimit-limit-tokens'),
    )
  }
  const [first = 0] = remaining
  expect(first).toBeGreaterThan(0)
  expect(remaining).toEqual([first, first - 1, first - 2, first - 3])
  expect(await recordedBy(stack().description.upstream_url)).toHaveLength(before)
})

describe('a client with a wrong base URL is told the right one', () => {
  const message = { role: 'user', content: 'Hello' } as const
  const chat = { model: 'gpt-scripted', messages: [message] }
  const respond = { model: 'gpt-scripted', input: 'Hello' }
  const openaiAt = (path: string) =>
    new OpenAI({ baseURL: `${baseUrl()}${path}`, apiKey: key, maxRetries: 0 })
  const anthropicAt = (path: string) =>
    new Anthropic({ baseURL: `${baseUrl()}${path}`, apiKey: key, maxRetries: 0 })

  test.each([
    ['chat.completions.create', (client: OpenAI) => client.chat.completions.create(chat)],
    ['responses.create', (client: OpenAI) => client.responses.create(respond)],
    ['models.retrieve', (client: OpenAI) => client.models.retrieve('gpt-scripted')],
  ] as const)('OpenAI, %s', async (_, ask) => {
    const lacking = await ask(openaiAt('')).catch((error: unknown) => error)
    expect(lacking).toBeInstanceOf(OpenAINotFound)
    expect((lacking as Error).message).toMatch(
      /lacks '\/v1': set the client's base URL to https:\/\/<host>\/v1\.$/,
    )
    const doubled = await ask(openaiAt('/v1/v1')).catch((error: unknown) => error)
    expect(doubled).toBeInstanceOf(OpenAINotFound)
    expect((doubled as Error).message).toMatch(
      /has '\/v1' more than once: set the client's base URL to https:\/\/<host>\/v1,/,
    )
  })

  test.each([
    ['messages.create', (client: Anthropic) => client.messages.create({ ...chat, max_tokens: 9 })],
    ['messages.countTokens', (client: Anthropic) => client.messages.countTokens(chat)],
  ] as const)('Anthropic, which adds /v1 itself, %s', async (_, ask) => {
    const doubled = await ask(anthropicAt('/v1')).catch((error: unknown) => error)
    expect(doubled).toBeInstanceOf(AnthropicNotFound)
    expect((doubled as Error).message).toContain(
      "has '/v1' more than once: set the client's base URL to https://<host>, because the client adds '/v1' itself.",
    )
  })
})
