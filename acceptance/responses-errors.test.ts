import OpenAI, { APIError, BadRequestError, NotFoundError } from 'openai'
import { beforeAll, describe, expect, test } from 'vitest'

import { eventsOf, promptFor } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// With RESPONSES_ERRORS=openai the official client shows what is wrong; without it the flat body stays as it was.

const stack = useStack({ environment: { RESPONSES_ERRORS: 'openai' } })
let flatUrl = ''
beforeAll(async () => {
  flatUrl = (await stack().startApi('flat', { RESPONSES_ERRORS: 'flat' })).baseUrl
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

const post = (baseUrl: string, body: object) =>
  fetch(`${baseUrl}/v1/responses`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${stack().description.project_key}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify(body),
  })

const broken = {
  model: 'gpt-scripted',
  input: promptFor({ text: 'One two three four.', closeAfter: { pieces: 2 } }),
  stream: true,
}

/** The types of the events, and their numbers, which must be those of their places. */
async function readEvents(baseUrl: string) {
  const response = await post(baseUrl, broken)
  const events = eventsOf(await response.text()).map(
    ({ data }) => data as { type: string; sequence_number: number },
  )
  expect(events.map((event) => event.sequence_number)).toEqual(events.map((_, index) => index))
  return events.map(({ type }) => type)
}

test('the event stands before response.failed, which other clients read', async () => {
  const types = await readEvents(stack().description.base_url)
  expect(types.slice(-2)).toEqual(['error', 'response.failed'])
})

test('without the setting the body is flat, and the stream has no such event', async () => {
  const response = await post(flatUrl, { model: 'none', input: 'Hello' })
  expect(await response.json()).toEqual({ error: expect.any(String), code: 'model_not_found' })
  const types = await readEvents(flatUrl)
  expect(types).not.toContain('error')
  expect(types.at(-1)).toBe('response.failed')
})
