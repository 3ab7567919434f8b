import type { Script } from '@gatehouse/tools/scripted-upstream/script'
import { beforeEach, describe, expect, test } from 'vitest'

import { clearRecords, recordedBy } from './support/codex/upstream.ts'
import { ask, eventsOf, type Format, formats, promptFor } from './support/streams/call.ts'
import { useStack } from './support/use-stack.ts'

// Rules that hold in every format, whatever format the upstream speaks.

const models = ['claude-scripted', 'responses-scripted', 'chat-scripted'] as const
const modelOf = {
  messages: 'claude-scripted',
  responses: 'responses-scripted',
  chat: 'chat-scripted',
} as const satisfies Record<Format, (typeof models)[number]>

const stack = useStack({ paidUsd: '1000' })
const upstreamUrl = () => stack().description.upstream_url
beforeEach(() => clearRecords(upstreamUrl()))

const target = () => ({
  baseUrl: stack().description.base_url,
  credential: stack().description.project_key,
})

type Asking = { format: Format; model: string; body?: object; script?: Script }
const send = ({ format, model, body = {}, script = { text: 'Done.' } }: Asking) =>
  ask(target(), { format, model, script, isStreamed: false, body: { ...body } })

const lastBody = async () => (await recordedBy(upstreamUrl())).at(-1)?.body ?? {}

const png = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0]).toString(
  'base64',
)
const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0, 0, 0, 0, 0, 0, 0]).toString('base64')

function withImage(format: Format, mediaType: string, data: string): object {
  const url = `data:${mediaType};base64,${data}`
  switch (format) {
    case 'messages': {
      const source = { type: 'base64', media_type: mediaType, data }
      return { messages: [{ role: 'user', content: [{ type: 'image', source }] }] }
    }
    case 'chat':
      return {
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      }
    case 'responses':
      return { input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }] }
  }
}

describe.each(formats)('a caller of %s', (format) => {
  describe.each(models)('at %s', (model) => {
    test('may send a temperature from 0 to 2; upstreams of Messages get at most 1', async () => {
      for (const temperature of [0, 1, 1.5, 2]) {
        const answer = await send({ format, model, body: { temperature } })
        expect(answer.status, answer.text).toBe(200)
        const most = model === 'claude-scripted' ? 1 : 2
        expect((await lastBody())['temperature']).toBe(Math.min(temperature, most))
      }
      const { status } = await send({ format, model, body: { temperature: 2.1 } })
      expect(status).toBe(400)
    })

    test('has its consecutive messages of one role merged where they are translated', async () => {
      const said = (role: string, content: string) => ({ role, content })
      const conversation = [
        said('user', 'one'),
        said('user', 'two'),
        said('assistant', 'three'),
        said('assistant', 'four'),
        said('user', 'five'),
        said('user', promptFor({ text: 'Done.' })),
      ]
      const member = format === 'responses' ? 'input' : 'messages'
      const answer = await send({ format, model, body: { [member]: conversation } })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Done.')])
      const body = await lastBody()
      const sent = (body['input'] ?? body['messages']) as { role: string; content: unknown }[]
      const roles = sent.map(({ role }) => role)
      const isSame = model === modelOf[format]
      expect(roles).toEqual(
        isSame ? conversation.map(({ role }) => role) : ['user', 'assistant', 'user'],
      )
      const text = JSON.stringify(sent)
      const words = ['one', 'two', 'three', 'four', 'five'].map((word) => text.indexOf(word))
      expect(words).toEqual(words.toSorted((left, right) => left - right))
      expect(Math.min(...words)).toBeGreaterThan(0)
    })

    test('gets 400 for an image that is not of its type, and nothing is sent', async () => {
      for (const [mediaType, data] of [
        ['image/png', jpeg],
        ['image/jpeg', png],
        ['image/png', 'AAAA'],
        ['image/svg+xml', Buffer.from('<svg/>').toString('base64')],
      ] as const) {
        const answer = await send({ format, model, body: withImage(format, mediaType, data) })
        expect([answer.status, answer.text]).toEqual([
          400,
          expect.stringContaining('"code":"invalid_image"'),
        ])
      }
      expect(await recordedBy(upstreamUrl())).toEqual([])
      const good = await send({ format, model, body: withImage(format, 'image/png', png) })
      expect(good.status, good.text).toBe(200)
      expect(JSON.stringify(await lastBody())).toContain(png)
    })

    test.each([400, 413, 422])("gets a provider's %i with the provider's words", async (status) => {
      // Longer than any message of our own.
      const message = `prompt is too long: 200001 tokens > 200000 maximum ${'.'.repeat(400)}`
      const error = { status, type: 'odd_error', message, code: 'odd_code' }
      const answer = await send({ format, model, script: { error } })
      const code = model === 'claude-scripted' ? 'upstream_rejected' : 'odd_code'
      const bodies = {
        messages: {
          type: 'error',
          error: { type: 'odd_error', message, code },
          request_id: answer.headers['x-request-id'],
        },
        chat: { error: { message, type: 'odd_error', param: null, code } },
        responses: { error: message, code },
      }
      expect([answer.status, JSON.parse(answer.text)]).toEqual([status, bodies[format]])
      expect(answer.headers['x-gatehouse-error']).toBe('upstream_rejected')
      expect(answer.headers['x-upstream-request-id']).toMatch(/^req_scripted/)
      expect(answer.headers['x-request-id']).toMatch(/^req_[0-9a-z]{24}$/)
    })
  })
})

/** Where a model finds the instructions that a caller of Messages sends between other messages. */
const instructionRole = {
  'claude-scripted': 'system',
  'responses-scripted': 'developer',
  'chat-scripted': 'system',
} as const

test.each(models)('instructions between messages reach %s in their place', async (model) => {
  const messages = [
    { role: 'user', content: 'one' },
    { role: 'assistant', content: 'two' },
    { role: 'system', content: 'Be brief.', clear_at: 'next_user_message' },
    { role: 'user', content: promptFor({ text: 'Done.' }) },
  ]
  const answer = await send({ format: 'messages', model, body: { messages } })
  expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Done.')])
  const body = await lastBody()
  const sent = (body['input'] ?? body['messages']) as { role: string }[]
  expect(sent.map(({ role }) => role)).toEqual([
    'user',
    'assistant',
    instructionRole[model],
    'user',
  ])
  expect(JSON.stringify(sent[2])).toContain('Be brief.')
  if (model === 'claude-scripted') expect(sent[2]).toEqual(messages[2])
})

test.each(models)('a stream of Messages from %s starts with a count and a ping', async (model) => {
  const script = { text: 'Done.', usage: { input: 321, output: 2 } }
  const { status, text } = await ask(target(), { format: 'messages', model, script })
  expect(status, text).toBe(200)
  const [start, ping, ...others] = eventsOf(text)
  expect([start?.event, ping]).toEqual(['message_start', { event: 'ping', data: { type: 'ping' } }])
  type Start = { message: { usage: { input_tokens: number } } }
  expect((start!.data as Start).message.usage.input_tokens).toBeGreaterThan(0)
  const last = others.find(({ event }) => event === 'message_delta')
  expect(last?.data).toMatchObject({ usage: { input_tokens: 321 } })
})

test.each(models)('count_tokens for %s fills in what may be left out', async (model) => {
  const { base_url, project_key } = stack().description
  const count = async (body: object) => {
    const response = await fetch(`${base_url}/v1/messages/count_tokens`, {
      method: 'POST',
      headers: { 'x-api-key': project_key, 'content-type': 'application/json' },
      body: JSON.stringify({ model, tools, ...body }),
    })
    return [response.status, (await response.json()) as { input_tokens: number }] as const
  }
  const tools = [{ name: 'look_up', input_schema: { type: 'object' } }]
  const bare = { messages: [{ content: 'Hello there.' }] }
  const full = { messages: [{ role: 'user', content: 'Hello there.' }] }
  for (const [left, meant] of [
    [{}, {}],
    [{ tool_choice: { name: 'look_up' } }, { tool_choice: { type: 'tool', name: 'look_up' } }],
    [{ thinking: { budget_tokens: 2048 } }, { thinking: { type: 'enabled', budget_tokens: 2048 } }],
  ]) {
    const counted = await count({ ...bare, ...left })
    expect(counted).toEqual([200, { input_tokens: expect.any(Number) as number }])
    expect(counted).toEqual(await count({ ...full, ...meant }))
  }
  const instructed = [...full.messages, { role: 'system', content: 'Be brief. '.repeat(50) }]
  const [status, { input_tokens: more }] = await count({ messages: instructed })
  expect(status).toBe(200)
  expect(more).toBeGreaterThan((await count(full))[1].input_tokens + 100)
  expect((await count({ ...full, tool_choice: {} }))[0]).toBe(422)
  expect((await count({ ...full, thinking: {} }))[0]).toBe(422)
})
