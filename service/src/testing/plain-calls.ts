import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, request, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { onTestFinished } from 'vitest'

import type { House } from '#assemble.ts'
import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

import { readCredits } from './credit-calls.ts'

// An API with models whose upstream does what the test says, for calls of Chat Completions over real connections.

type Behaviour = (response: ServerResponse, call: number) => unknown

export const usage = { prompt_tokens: 20, completion_tokens: 30, total_tokens: 50 }
/** What these tokens cost; a token of any kind costs a credit. */
export const priceOfUsage = 50

export const completion = (content: string) => ({
  id: 'c',
  model: 'theirs',
  choices: [{ index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' }],
  usage,
})

export const sendPlain = (response: ServerResponse, body: object | string) =>
  response
    .writeHead(200, { 'content-type': 'application/json' })
    .end(typeof body === 'string' ? body : JSON.stringify(body))

export const sendStream = (response: ServerResponse, content: string) => {
  const chunk = (members: object) =>
    `data: ${JSON.stringify({ id: 'c', model: 'theirs', choices: [], ...members })}\n\n`
  const choice = (delta: object, finish_reason: string | null) => ({
    choices: [{ index: 0, delta, finish_reason }],
  })
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.end(
    chunk(choice({ content }, null)) +
      chunk(choice({}, 'stop')) +
      chunk({ usage }) +
      'data: [DONE]\n\n',
  )
}

/** An upstream that does what `behave` was last told. */
async function startUpstream() {
  const upstream = {
    behave: (() => undefined) as Behaviour,
    bodies: [] as Record<string, unknown>[],
    open: 0,
    url: '',
  }
  const server = createServer((message, response) => {
    upstream.open++
    response.once('close', () => upstream.open--)
    const chunks: Buffer[] = []
    message.on('data', (chunk: Buffer) => chunks.push(chunk))
    message.once('end', () => {
      upstream.bodies.push(JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>)
      upstream.behave(response, upstream.bodies.length)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
  return upstream
}

const modelOf = (id: string, members: object = {}) => ({
  id,
  context_tokens: 100_000,
  max_output_tokens: 50_000,
  default_output_tokens: 1000,
  prices: { input: '1', output: '1' },
  upstreams: [{ upstream: 'only' }],
  ...members,
})

async function writeCatalogue(base_url: string, settings: object) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-plain-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const only = { kind: 'openai', base_url, formats: ['chat_completions'], ...settings }
  const models = [
    modelOf('m'),
    modelOf('streams', { plain: false }),
    modelOf('two', { upstreams: [{ upstream: 'only' }, { upstream: 'second' }] }),
    modelOf('silent', { capabilities: { reasoning: false } }),
  ]
  const file = join(folder, 'models.json')
  await writeFile(file, JSON.stringify({ upstreams: { only, second: only }, models }))
  return { MODELS_FILE: file, STATE_DIRECTORY: folder }
}

export type PlainAnswer = { status: number; text: string }

type Options = {
  /** Settings of the upstream. */
  settings?: object
  /** Settings of the service; or how they follow from the id of the organization. */
  environment?: Record<string, string> | ((organizationId: string) => Record<string, string>)
  change?: (house: House) => House
}

export async function preparePlainCalls(options: Options = {}) {
  const { settings = {}, environment: own = {}, change } = options
  const upstream = await startUpstream()
  const files = await writeCatalogue(upstream.url, settings)
  const environment =
    typeof own === 'function'
      ? (organizationId: string) => ({ ...files, ...own(organizationId) })
      : { ...files, ...own }
  const api = await createTestApi({ environment, ...(change && { change }) })
  const { house, organization } = api
  await waitUntil(house.policies.areKnown)
  const { value: credential } = await createProjectKey(house, organization)
  const gift = { id: 'enough', amount: 1_000_000n }
  await grantCredits(organization.organizationId, gift, { ...house, by: operator })
  const baseUrl = await api.app.listen({ port: 0, host: '127.0.0.1' })

  /** Starts a call; `answer` rejects when it is hung up. */
  function begin(body: object = {}, path = '/v1/chat/completions') {
    const content = { messages: [{ role: 'user', content: 'Hello' }] }
    const call = request(new URL(path, baseUrl), {
      method: 'POST',
      agent: false,
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    })
    const answer = new Promise<PlainAnswer>((resolve, reject) => {
      call.once('error', reject)
      call.once('response', (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (more: string) => (text += more))
        response.once('end', () => resolve({ status: response.statusCode ?? 0, text }))
        response.once('error', reject)
      })
    })
    answer.catch(() => undefined)
    call.end(JSON.stringify({ model: 'm', ...content, ...body }))
    return { answer, hangUp: () => call.destroy() }
  }

  return {
    ...api,
    credential,
    upstream,
    begin,
    ask: (body: object = {}, path?: string) => begin(body, path).answer,
    /** Starts a call and hangs up when its upstream has the request. */
    async hangUp(body: object = {}) {
      const before = upstream.bodies.length
      const call = begin(body)
      await waitUntil(() => upstream.bodies.length > before)
      call.hangUp()
      await call.answer.catch(() => undefined)
    },
    credits: () => readCredits(house.db, organization.organizationId),
  }
}
export type PlainCalls = Awaited<ReturnType<typeof preparePlainCalls>>

/** The charges and the outcomes of all calls so far. */
export async function outcomesOf(calls: PlainCalls) {
  const { entries, events, held } = await calls.credits()
  return {
    charged: [...entries.values()]
      .filter(({ kind }) => kind === 'usage')
      .map(({ amount }) => Number(amount)),
    outcomes: events.flatMap((text) => text.split(' ')[1] ?? []),
    held: Number(held),
  }
}
