import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey, createTestClock } from '#testing/test-gateway.ts'

// A caller cannot make an upstream fetch from its private network (docs/security.md).

const urls = [
  'http://169.254.169.254/latest/meta-data/iam/',
  'http://127.0.0.1:6379/',
  'file:///etc/passwd',
  'http://[::ffff:10.0.0.1]/x.png',
  'http://0x7f.1/x.png',
  'gopher://127.0.0.1:6379/_FLUSHALL',
  'http://metadata.google.internal/computeMetadata/v1/',
]

type Way = { name: string; path: string; member: string; body: (url: string) => object }

const message = (model: string, block: object) => ({
  model,
  max_tokens: 5,
  messages: [{ role: 'user', content: [block, { type: 'text', text: 'Hello' }] }],
})
const item = (part: object) => ({ model: 'responses', input: [{ role: 'user', content: [part] }] })
const ways: readonly Way[] = [
  {
    name: 'Messages, image',
    path: '/v1/messages',
    member: 'body.messages[0].content[0].source.url',
    body: (url) => message('messages', { type: 'image', source: { type: 'url', url } }),
  },
  {
    name: 'Messages, document',
    path: '/v1/messages',
    member: 'body.messages[0].content[0].source.url',
    body: (url) => message('messages', { type: 'document', source: { type: 'url', url } }),
  },
  {
    name: 'Messages, image, translated to Chat Completions',
    path: '/v1/messages',
    member: 'body.messages[0].content[0].source.url',
    body: (url) => message('chat', { type: 'image', source: { type: 'url', url } }),
  },
  {
    name: 'Chat Completions, image',
    path: '/v1/chat/completions',
    member: 'body.messages[0].content[0].image_url.url',
    body: (url) => message('chat', { type: 'image_url', image_url: { url } }),
  },
  {
    name: 'Chat Completions, video in an image part',
    path: '/v1/chat/completions',
    member: 'body.messages[0].content[0].video_url.url',
    body: (url) =>
      message('chat', {
        type: 'image_url',
        image_url: { url: 'data:image/png;base64,iVBORw0KGgo=' },
        video_url: { url },
      }),
  },
  {
    name: 'Responses, image',
    path: '/v1/responses',
    member: 'body.input[0].content[0].image_url',
    body: (url) => item({ type: 'input_image', image_url: url }),
  },
  {
    name: 'Responses, file',
    path: '/v1/responses',
    member: 'body.input[0].content[0].file_url',
    body: (url) => item({ type: 'input_file', file_url: url }),
  },
]

/** It remembers what it is sent. Chat Completions get one word, everything else a refusal; a count is 7. */
async function startUpstream() {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const upstream = { bodies: [] as string[], refusal: 0, url: '' }
  const answer = async (request: IncomingMessage, response: ServerResponse) => {
    upstream.bodies.push(Buffer.concat(await request.toArray()).toString())
    if (request.url === '/tokenize') return response.end('{"count":7}')
    const isChat = request.url === '/v1/chat/completions'
    const status = upstream.refusal || (isChat ? 200 : 400)
    response.writeHead(status, { 'content-type': 'text/event-stream' })
    if (status !== 200) return response.end('{}')
    return response.end(`${chunk({ content: 'Hi' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
  }
  const server = createServer((request, response) => void answer(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return upstream
}

async function writeCatalogue(base_url: string, settings: object) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-media-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const format = (name: string, more: object = settings) => ({ base_url, formats: [name], ...more })
  const upstreams = {
    messages: format('messages'),
    responses: format('responses'),
    chat: { ...format('chat_completions'), counter: 'vllm' },
    open: format('chat_completions', { media_urls: 'any' }),
  }
  const models = { messages: ['messages'], responses: ['responses'], chat: ['chat', 'open'] }
  const file = join(folder, 'models.json')
  const catalogue = {
    upstreams,
    models: Object.entries(models).map(([id, used]) => ({
      id,
      context_tokens: 1000,
      max_output_tokens: 100,
      prices: { input: '1', output: '1' },
      upstreams: used.map((upstream) => ({ upstream })),
    })),
  }
  await writeFile(file, JSON.stringify(catalogue))
  return { MODELS_FILE: file, STATE_DIRECTORY: folder }
}

async function prepare(settings: object = {}, addresses: readonly string[] = []) {
  const upstream = await startUpstream()
  const { now, pass } = createTestClock()
  const environment = await writeCatalogue(upstream.url, settings)
  const api = await createTestApi({ now, environment, findAddresses: async () => addresses })
  await waitUntil(api.house.policies.areKnown)
  const { value: credential } = await createProjectKey(api.house, api.organization)
  const gift = { id: 'enough', amount: 1_000_000n }
  await grantCredits(api.organization.organizationId, gift, { ...api.house, by: operator })
  const post = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${credential}` }
    const response = await api.app.inject({ method: 'POST', url: path, headers, payload: body })
    return { status: response.statusCode, text: response.body, json: response.json<ErrorBody>() }
  }
  const chat = () => post('/v1/chat/completions', message('chat', { type: 'text', text: 'Hi' }))
  return { ...api, upstream, post, chat, pass }
}
type ErrorBody = { error: { message: string; code: string }; code?: string; message?: string }

const everything = urls.flatMap((url) => ways.map((way) => ({ url, way })))

/** Sends every URL in every way, and lists those that reached the upstream. */
async function sendEverything({ post, upstream }: Awaited<ReturnType<typeof prepare>>) {
  const answers = []
  for (const { url, way } of everything) answers.push(await post(way.path, way.body(url)))
  const reached = everything.filter(({ url }) =>
    upstream.bodies.some((body) => body.includes(JSON.stringify(url))),
  )
  return { answers, reached, sent: upstream.bodies.length }
}

test('400 by default: no URL reaches an upstream on a private network, in no way', async () => {
  const { answers, reached, sent } = await sendEverything(await prepare())
  expect(reached).toEqual([])
  expect(sent).toBe(0)
  for (const [index, { status, text }] of answers.entries()) {
    expect(status).toBe(400)
    expect(text).toContain(everything[index]!.way.member)
    expect(text).toContain("have the operator change 'media_urls' of the upstream")
    expect(text).toContain('unsupported_parameter')
  }
})

test('400 with public: none of them reaches the upstream, whatever name servers say', async () => {
  const { reached, sent } = await sendEverything(
    await prepare({ media_urls: 'public' }, ['93.184.215.14']),
  )
  expect([reached, sent]).toEqual([[], 0])
})

test('with any: all of them reach the upstream', async () => {
  const { reached, sent } = await sendEverything(await prepare({ media_urls: 'any' }))
  expect([reached.length, sent]).toEqual([49, 49])
})

const picture = 'https://cdn.example.com/cat.png'

test('200 with public: a URL of the public internet is sent on as it is, also when translated', async () => {
  const { post, upstream } = await prepare({ media_urls: 'public' }, ['93.184.215.14'])
  expect((await post('/v1/messages', ways[2]!.body(picture))).status).toBe(200)
  expect((await post('/v1/chat/completions', ways[3]!.body(picture))).status).toBe(200)
  expect(upstream.bodies.map((body) => body.includes(picture))).toEqual([true, true])
})

test('400 with public: a name with a private address, which the answer does not tell', async () => {
  const { post, upstream } = await prepare({ media_urls: 'public' }, ['93.184.215.14', '10.1.2.3'])
  const { status, text } = await post('/v1/chat/completions', ways[3]!.body(picture))
  expect([status, upstream.bodies]).toEqual([400, []])
  expect(text).toContain('The host name has no address, or one outside the public internet.')
  expect(text).not.toContain('10.1.2.3')
})

test('400: data that llama.cpp would take for a URL is refused where it becomes audio', async () => {
  const { post, upstream } = await prepare()
  const source = { type: 'base64', media_type: 'audio/wav', data: urls[0] }
  const answer = await post('/v1/messages', message('chat', { type: 'document', source }))
  expect([answer.status, upstream.bodies]).toEqual([400, []])
})

test('a refused call costs nothing and says nothing about the health of the upstream', async () => {
  const { post, chat, upstream, db } = await prepare()
  for (let call = 0; call < 20; call++) {
    expect((await post('/v1/chat/completions', ways[3]!.body(picture))).status).toBe(400)
  }
  const entries = await db
    .selectFrom('ledger_entry')
    .selectAll()
    .where('kind', '!=', 'grant')
    .execute()
  expect(entries.map(({ amount }) => Number(amount)).filter((amount) => amount !== 0)).toEqual([])
  expect(await db.selectFrom('credit_hold').selectAll().execute()).toEqual([])
  expect([(await chat()).status, upstream.bodies.length]).toEqual([200, 1])
})

test('a refused call does not use up the probe of an upstream that was out of service', async () => {
  const { post, upstream, pass } = await prepare()
  const text = () => post('/v1/messages', message('messages', { type: 'text', text: 'Hi' }))
  upstream.refusal = 401 // our key is refused: it is out for all after five calls
  for (let call = 0; call < 6; call++) await text()
  expect(upstream.bodies).toHaveLength(5)
  pass(5000)
  expect((await post('/v1/messages', ways[0]!.body(picture))).status).toBe(400)
  await text()
  expect(upstream.bodies).toHaveLength(6)
})

test('200: a token count asks the upstream only about media that it may get', async () => {
  const { post, upstream } = await prepare()
  const path = '/v1/messages/count_tokens'
  const counted = await post(path, ways[2]!.body(picture))
  expect([counted.status, upstream.bodies]).toEqual([200, []])
  expect(counted.text).not.toBe('{"input_tokens":7}')
  const source = { type: 'base64', media_type: 'image/png', data: 'iVBORw0KGgo=' }
  expect((await post(path, message('chat', { type: 'image', source }))).text).toBe(
    '{"input_tokens":7}',
  )
})
