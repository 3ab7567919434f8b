import OpenAI, { APIError, BadRequestError, NotFoundError } from 'openai'
import { beforeAll, describe, expect, test } from 'vitest'

import { eventsOf, promptFor } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// Official clients show what is wrong; everybody else gets the flat body, unless the operator chooses one for all.

const stack = useStack()
const urls = { auto: '', flat: '', openai: '' }
beforeAll(async () => {
  urls.auto = stack().description.base_url
  for (const setting of ['flat', 'openai'] as const) {
    urls[setting] = (await stack().startApi(setting, { RESPONSES_ERRORS: setting })).baseUrl
  }
})

const clientOf = (apiKey = stack().description.project_key) =>
  new OpenAI({ baseURL: `${stack().description.base_url}/v1`, apiKey, maxRetries: 0 })

const caught = async (promise: PromiseLike<unknown>): Promise<APIError> =>
  promise.then(
    () => expect.fail('the call did not fail'),
    (error: unknown) => error as APIError,
  )

describe('the official client shows message, code, type and parameter of', () => {
  test('a request that is refused', async () => {
    const error = await caught(clientOf().responses.create({ model: 'none', input: 'Hello' }))
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toMatchObject({
      code: 'model_not_found',
      type: 'invalid_request_error',
      param: 'model',
    })
    expect(error.message).toMatch(/^404 .*model.*\.$/i)
    const invalid = await caught(
      clientOf().responses.create({ model: 'gpt-scripted', input: 'x', temperature: 9 }),
    )
    expect(invalid).toBeInstanceOf(BadRequestError)
    expect(invalid).toMatchObject({ code: 'invalid_request', param: 'body.temperature' })
  })

  test('a wrong key', async () => {
    const error = await caught(clientOf('wrong').responses.create({ model: 'x', input: 'Hello' }))
    expect(error).toMatchObject({
      status: 401,
      code: 'invalid_api_key',
      type: 'invalid_request_error',
    })
  })

  test('a path below that does not exist', async () => {
    const error = await caught(clientOf().responses.retrieve('resp_1'))
    expect(error).toBeInstanceOf(NotFoundError)
    expect(error).toMatchObject({ code: 'route_not_found', type: 'invalid_request_error' })
  })

  test.each(['gpt-scripted', 'chat-scripted', 'claude-scripted'])(
    'a refusal of the provider of %s',
    async (model) => {
      const script = { error: { status: 400, message: 'The oven is out.' } }
      const error = await caught(clientOf().responses.create({ model, input: promptFor(script) }))
      expect(error).toMatchObject({ status: 400, code: 'upstream_rejected' })
      expect(error.type).toBe('invalid_request_error')
      expect(error.message).toContain('The oven is out.')
    },
  )

  test.each(['gpt-scripted', 'responses-scripted', 'chat-scripted', 'claude-scripted'])(
    'a stream of %s that fails midway',
    async (model) => {
      const script = { text: 'One two three four.', closeAfter: { pieces: 2 } }
      const stream = await clientOf().responses.create({
        model,
        input: promptFor(script),
        stream: true,
      })
      const seen: string[] = []
      const error = await caught(
        (async () => {
          for await (const event of stream) seen.push(event.type)
        })(),
      )
      expect(seen).toContain('response.created')
      expect(error).toBeInstanceOf(APIError)
      expect(error).toMatchObject({
        message: 'The connection to the model provider broke.',
        code: 'upstream_error',
        type: 'server_error',
      })
    },
  )

  test('a stream that its helper reads', async () => {
    const script = { text: 'One two three four.', closeAfter: { pieces: 2 } }
    const stream = clientOf().responses.stream({ model: 'gpt-scripted', input: promptFor(script) })
    const error = await caught(stream.finalResponse())
    expect(error).toMatchObject({ code: 'upstream_error', type: 'server_error' })
  })
})

const vary = 'x-stainless-lang, user-agent'
type Setting = keyof typeof urls

const post = (setting: Setting, body: object, headers: Record<string, string> = {}) =>
  fetch(`${urls[setting]}/v1/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${stack().description.project_key}`,
      'content-type': 'application/json',
      ...headers,
    },
    body: JSON.stringify(body),
  })

const unknown = { model: 'none', input: 'Hello' }
const flat = { error: expect.any(String) as string, code: 'model_not_found' }
const object = {
  error: expect.objectContaining({ code: 'model_not_found', param: 'model' }) as object,
}
const broken = {
  model: 'gpt-scripted',
  input: promptFor({ text: 'One two three four.', closeAfter: { pieces: 2 } }),
  stream: true,
}

/** The types of the last events, and how the answer depends on the client. */
async function readEnd(setting: Setting, headers?: Record<string, string>) {
  const response = await post(setting, broken, headers)
  const events = eventsOf(await response.text()).map(
    ({ data }) => data as { type: string; sequence_number: number },
  )
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
  const [before, last] = events.slice(-2).map(({ type }) => type)
  return { hasErrorEvent: before === 'error', last, vary: response.headers.get('vary') }
}

/** By the headers of the client: whether it is an official one. */
const clients: [string, Record<string, string>, boolean][] = [
  ['x-stainless-lang', { 'x-stainless-lang': 'python' }, true],
  ['the AI SDK', { 'user-agent': 'ai/5.0.1 ai-sdk/provider-utils/3.0.1 runtime/node.js/24' }, true],
  ['a provider of the AI SDK', { 'user-agent': 'my-app/1.0 ai-sdk/openai/4.0.1' }, true],
  ['another program', { 'user-agent': 'acme-ai-sdk-go/2' }, false],
  ['a later one', { 'user-agent': 'ai-sdk-openai/4.0.111 ai-sdk-provider-utils/5.0.76' }, true],
  ['no official client', { 'user-agent': 'openai-like/1.0' }, false],
  ['a name that ends in ai', { 'user-agent': 'main-ai/2.0' }, false],
  ['Codex', { 'user-agent': 'codex_cli_rs/0.166.0' }, false],
]

describe.each(clients)('with the headers of %s', (_, headers, isOfficial) => {
  test('the body is for the client', async () => {
    const response = await post('auto', unknown, headers)
    expect([response.status, response.headers.get('vary')]).toEqual([404, vary])
    expect(await response.json()).toEqual(isOfficial ? object : flat)
  })

  test('so is the end of a stream; response.failed stays the last event', async () => {
    expect(await readEnd('auto', headers)).toEqual({
      hasErrorEvent: isOfficial,
      last: 'response.failed',
      vary,
    })
  })
})

test.each([
  ['flat', flat],
  ['openai', object],
] as const)('RESPONSES_ERRORS=%s: everybody gets the same', async (setting, body) => {
  for (const [, headers] of clients) {
    const response = await post(setting, unknown, headers)
    expect(await response.json()).toEqual(body)
    expect(response.headers.get('vary')).toBeNull()
    expect(await readEnd(setting, headers)).toEqual({
      hasErrorEvent: setting === 'openai',
      last: 'response.failed',
      vary: null,
    })
  }
})

test('a path below, and a request without a key, have the body of the client too', async () => {
  const [below, headers] = [`${urls.auto}/v1/responses/resp_1`, { 'x-stainless-lang': 'js' }]
  for (const given of [{}, headers]) {
    const isFlat = given !== headers
    for (const answer of [
      await fetch(below, { headers: given }),
      await post('auto', unknown, { ...given, authorization: 'Bearer wrong' }),
    ]) {
      const { error } = (await answer.json()) as { error: unknown }
      expect([typeof error, answer.headers.get('vary')]).toEqual([
        isFlat ? 'string' : 'object',
        vary,
      ])
    }
  }
})
