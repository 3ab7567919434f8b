import Anthropic from '@anthropic-ai/sdk'
import { createProjectApiKey } from '@gatehouse/contract/api-key'
import { createClient } from '@gatehouse/contract/client'
import { type LedgerEntry, listLedgerEntries } from '@gatehouse/contract/credits'
import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { readPolicyDecisions } from '@gatehouse/contract/policy-evaluation'
import { createProject } from '@gatehouse/contract/project'
import { stopProcess, untilReady } from '@gatehouse/tools/service-process'
import { createOrganization } from '@gatehouse/tools/start-stack'
import OpenAI from 'openai'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'

import { startDatabasePoller } from './support/baseline/poller.ts'
import { computeAmount } from './support/credits/money.ts'
import {
  draftPolicy,
  eventually,
  putInForce,
  readCallEvents,
} from './support/policies/enforcing.ts'
import {
  type Answer,
  ask,
  beginRaw,
  bodyOf,
  type Format,
  formats,
  type RequestOptions,
  type Target,
} from './support/streams/call.ts'
import { resetUpstream, stateOf } from './support/streams/upstream.ts'
import { useStack } from './support/use-stack.ts'

// What a published policy does to calls, at every process: who is blocked and from when on, what it costs, and what the
// audit log and the counts tell of it.

const stack = useStack({ processes: 2, paidUsd: '5000' })

const admin = () => {
  const { base_url: baseUrl, admin_key: credential } = stack().description
  return createClient({ baseUrl, credential })
}
const targets = (): Target[] =>
  stack().description.base_urls.map((baseUrl) => ({
    baseUrl,
    credential: stack().description.project_key,
  }))
const target = (): Target => targets()[0]!

const modelOf = {
  messages: 'claude-scripted',
  chat: 'chat-scripted',
  responses: 'responses-scripted',
} as const satisfies Record<Format, string>

const all: readonly Endpoint[] = endpoints
/** Everything that takes a request for a model. A new one fails here until it has a body below. */
const routes = all.filter(
  ({ permission, method }) => permission === 'model.invoke' && method === 'POST',
)
const bodies: Record<string, object> = {
  createMessage: { max_tokens: 50, messages: [{ role: 'user', content: 'Hello' }] },
  createResponse: { input: 'Hello' },
  createChatCompletion: { messages: [{ role: 'user', content: 'Hello' }] },
  countTokens: { messages: [{ role: 'user', content: 'Hello' }] },
}

/** What comes of a call to every route, streamed and plain, at every process. */
async function tryRoutes(): Promise<Set<string>> {
  const calls = targets().flatMap((at) =>
    routes.flatMap(({ id, path }) =>
      (id === 'countTokens' ? [{}] : [{ stream: true }, { stream: false }]).map(async (shape) => {
        const body = bodies[id]
        if (!body) throw new Error(`${id} reaches a model and is not tested here.`)
        const payload = JSON.stringify({ model: 'claude-scripted', ...body, ...shape })
        const { status, text } = await beginRaw(at, { path, payload }).answer
        const isBlocked = text.includes('policy_blocked')
        return `${id} ${status}${isBlocked ? ' blocked' : ''}`
      }),
    ),
  )
  return new Set(await Promise.all(calls))
}

const everyRoute = (outcome: string) => new Set(routes.map(({ id }) => `${id} ${outcome}`))

test('a policy is in force at every route of every process as soon as publish with wait=applied answers', async () => {
  expect(await tryRoutes()).toEqual(everyRoute('200'))
  const policy = await putInForce(stack(), { rule: 'cel: true' })
  expect(await tryRoutes()).toEqual(everyRoute('400 blocked'))
  await policy.pause()
  expect(await tryRoutes()).toEqual(everyRoute('200'))
})

// Processes poll once a second, so the promised 5 seconds are that many polls, as in rollout.test.ts.
test('without the wait every process blocks within 5 polls', async () => {
  const poller = await startDatabasePoller(stack().database.url)
  onTestFinished(poller.stop)
  const policy = await draftPolicy(stack(), { rule: 'cel: true' })
  const isBlocked = async (at: Target) =>
    (await ask(at, { format: 'messages', model: 'claude-scripted', isStreamed: false })).status ===
    400
  await policy.publishOnly()
  const publishedAt = performance.now()
  for (const at of targets()) await expect.poll(() => isBlocked(at), eventually).toBe(true)
  const tookMs = performance.now() - publishedAt
  expect(tookMs / poller.longestPauseMs(publishedAt)).toBeLessThanOrEqual(5)
  expect(await tryRoutes()).toEqual(everyRoute('400 blocked'))
})

const requestIdOf = ({ headers }: Answer) => headers['x-request-id'] ?? ''

/** The only event of a call. It is durable before the last byte of the answer. */
async function eventOf(answer: Answer) {
  const events = await readCallEvents(stack(), requestIdOf(answer))
  expect(events).toHaveLength(1)
  return events[0]
}

/** What was charged for a call; nothing if it never had a hold. */
async function chargesOf(answer: Answer): Promise<LedgerEntry[]> {
  const { data } = await admin().call(listLedgerEntries, { query: { order: 'desc', limit: '100' } })
  return data.filter(({ request_id }) => request_id === requestIdOf(answer))
}

const matchOf = (policy_id: string, direction: string, mode: string) => ({
  policy_id,
  version: 1,
  direction,
  mode,
  score: 10_000,
  threshold: 5000,
})

/** The members of an event by which a policy blocked its call. */
const blockedBy = ({ id, name }: { id: string; name: string }, direction: string) => ({
  phase: 'call',
  outcome: 'blocked',
  decision: 'refuse',
  effective_decision: 'refuse',
  enforced: true,
  reason_code: 'REFUSE',
  policy_id: id,
  policy_name: name,
  version: 1,
  matches: [matchOf(id, direction, 'enforcing')],
})

const headersOf = ({ headers }: Answer) => ({
  decision: headers['x-policy-decision'],
  holdback: headers['x-policy-holdback'],
  epoch: Number(headers['x-policy-epoch']),
})

/** The longest window of moderation, which is more than the rules here hold back. */
const holdback = '56'

const script = { text: 'one two forbidden four', usage: { input: 100, output: 20 } }

function send(format: Format, options: Partial<RequestOptions> = {}, at = target()) {
  return ask(at, { format, model: modelOf[format], script, ...options })
}

describe.each(formats)('%s:', (format) => {
  test.each([true, false])('a blocked request costs nothing (streamed: %s)', async (isStreamed) => {
    const rule = 'cel: text.contains("forbidden")'
    const policy = await putInForce(stack(), { name: 'Words', rule, direction: 'request' })
    await resetUpstream(stack().description.upstream_url)
    const answer = await send(format, { isStreamed })
    expect(answer.status).toBe(400)
    expect(headersOf(answer)).toMatchObject({ decision: 'refuse', holdback })
    expect(await eventOf(answer)).toMatchObject({
      ...blockedBy(policy, 'request'),
      status: 400,
      code: 'policy_blocked',
    })
    expect(await chargesOf(answer)).toEqual([])
    expect(await stateOf(stack().description.upstream_url)).toMatchObject({ requests: 0 })
  })

  test.each([true, false])(
    'a blocked answer is charged for what was generated (streamed: %s)',
    async (isStreamed) => {
      const rule = 'cel: text.contains("forbidden")'
      const policy = await putInForce(stack(), { rule, direction: 'response' })
      const answer = await send(format, { isStreamed })
      expect(answer.status).toBe(isStreamed ? 200 : 400)
      expect(answer.text).toContain('policy_blocked')
      expect(answer.text).not.toContain('forbidden')
      expect(headersOf(answer)).toMatchObject({
        decision: isStreamed ? 'allow' : 'refuse',
        holdback,
      })
      expect(await eventOf(answer)).toMatchObject(blockedBy(policy, 'response'))
      const [charge, ...others] = await chargesOf(answer)
      expect(others).toEqual([])
      if (!charge) throw new Error('The answer was not charged.')
      expect(BigInt(charge.amount)).toBe(computeAmount(charge))
      // A plain answer has told its usage; the stream was ended before it did.
      if (!isStreamed) expect(charge).toMatchObject({ input_tokens: 100, output_tokens: 20 })
      else expect(charge.output_tokens).toBeGreaterThanOrEqual(3)
    },
  )
})

/** What a client makes of a call: its error, what it returned, and the text that it showed on the way. */
type Shown = { error?: Error; whole?: unknown; text: string }

const options = () => ({
  baseURL: `${stack().description.base_url}/v1`,
  apiKey: stack().description.project_key,
  maxRetries: 0,
})

/** The streaming and the plain call of every official client. */
const clients: Record<
  Format,
  (body: never, isStreamed: boolean, onText: (text: string) => void) => Promise<unknown>
> = {
  async messages(body: Anthropic.MessageCreateParamsNonStreaming, isStreamed, onText) {
    const client = new Anthropic({ ...options(), baseURL: stack().description.base_url })
    if (!isStreamed) return client.messages.create(body)
    return client.messages.stream(body).on('text', onText).finalMessage()
  },
  async chat(body: OpenAI.ChatCompletionCreateParamsNonStreaming, isStreamed, onText) {
    const { completions } = new OpenAI(options()).chat
    if (!isStreamed) return completions.create(body)
    const stream = completions.stream({ ...body, stream: true })
    return stream.on('content', onText).finalChatCompletion()
  },
  async responses(body: OpenAI.Responses.ResponseCreateParamsNonStreaming, isStreamed, onText) {
    const { responses } = new OpenAI(options())
    if (!isStreamed) return responses.create(body)
    const stream = responses.stream({ ...body, stream: true })
    return stream.on('response.output_text.delta', ({ delta }) => onText(delta)).finalResponse()
  },
}

async function show(format: Format, model: string, isStreamed: boolean): Promise<Shown> {
  let text = ''
  const body = bodyOf({ format, model, script, isStreamed: false }) as never
  const call = clients[format](body, isStreamed, (piece) => (text += piece))
  return call.then(
    (whole) => ({ whole, text }),
    (error: unknown) => ({ error: error as Error, text }),
  )
}

/** The 400 of each client. Only the one of Messages keeps all of the body. */
function expectBadRequest(error: Error | undefined, format: Format, policyId: string) {
  const kinds = {
    messages: Anthropic.BadRequestError,
    chat: OpenAI.BadRequestError,
    responses: OpenAI.BadRequestError,
  }
  const policy = { policy_id: policyId, version: 1, reason_code: 'REFUSE' }
  const ofOpenai = { code: 'policy_blocked', type: 'invalid_request_error' }
  const members = {
    messages: { error: { error: { code: 'policy_blocked' }, policy } },
    chat: ofOpenai,
    responses: ofOpenai,
  }
  expect(error).toBeInstanceOf(kinds[format])
  expect(error).toMatchObject({ status: 400, ...members[format] })
  expect(error?.message).toContain(policyId)
}

/** How each client ends a stream that is blocked midway. */
function expectBrokenOff({ error }: Shown, format: Format, policyId: string) {
  expect(error).toBeInstanceOf(format === 'messages' ? Anthropic.APIError : OpenAI.APIError)
  expect(error?.message).toContain(policyId)
  if (format !== 'messages') expect(error).toMatchObject({ code: 'policy_blocked' })
  else expect(error).toMatchObject({ error: { error: { code: 'policy_blocked' } } })
}

describe.each(formats)('the official client of %s', (format) => {
  test('reports a blocked request as a bad request', async () => {
    const rule = 'cel: text.contains("forbidden")'
    const policy = await putInForce(stack(), { rule, direction: 'request' })
    for (const isStreamed of [true, false]) {
      const { error, text } = await show(format, modelOf[format], isStreamed)
      expectBadRequest(error, format, policy.id)
      expect(text).toBe('')
    }
    const body = await send(format, { isStreamed: false })
    const { policy: member } = JSON.parse(body.text) as { policy?: object }
    const told = { policy_id: policy.id, version: 1, reason_code: 'REFUSE' }
    expect(member).toEqual(format === 'responses' ? undefined : told)
  })

  test.each(Object.values(modelOf))('reports a blocked answer of %s', async (model) => {
    const rule = 'cel: text.contains("forbidden")'
    const policy = await putInForce(stack(), { rule, direction: 'response' })
    const streamed = await show(format, model, true)
    expectBrokenOff(streamed, format, policy.id)
    expect(streamed.text).toBe('one two')
    expect(JSON.stringify(streamed.whole ?? '')).not.toMatch(/forbidden|four/)
    const plain = await show(format, model, false)
    expectBadRequest(plain.error, format, policy.id)
  })
})

test('a blocked request is 400 also where there are no credits; any other is 402', async () => {
  const { service, description } = stack()
  const poor = await createOrganization(service, 'Poor Ltd', '0')
  const client = createClient({ baseUrl: description.base_url, credential: poor.admin_key })
  const params = { project_id: poor.project_id }
  const { value } = await client.call(createProjectApiKey, { params, body: { name: 'key' } })
  const rule = 'cel: text.contains("forbidden")'
  await putInForce(stack(), { rule, direction: 'request' }, poor)
  const at = { ...target(), credential: value }
  const blocked = await send('chat', { isStreamed: false }, at)
  expect([blocked.status, (await eventOf(blocked))?.['outcome']]).toEqual([400, 'blocked'])
  const refused = await send('chat', { isStreamed: false, script: { text: 'fine' } }, at)
  expect([refused.status, (await eventOf(refused))?.['outcome']]).toEqual([402, 'refused'])
})

/** The counts of a policy: what was decided how often. */
async function countsOf(policy_id: string) {
  const { data } = await admin().call(readPolicyDecisions, { params: { policy_id }, query: {} })
  // A test that runs at midnight has two days.
  const total = (key: string) =>
    data.filter((item) => keyOf(item) === key).reduce((sum, { count }) => sum + count, 0)
  const keyOf = ({ direction, decision, mode }: (typeof data)[number]) =>
    `${direction} ${decision} ${mode}`
  return Object.fromEntries(data.map((item) => [keyOf(item), total(keyOf(item))]))
}

test('a monitoring policy lets everything pass; its matches are in the event and in the counts', async () => {
  const rule = 'cel: text.contains("forbidden")'
  const policy = await putInForce(stack(), { rule, mode: 'monitoring', direction: 'both' })
  for (const isStreamed of [true, false]) {
    const answer = await send('messages', { isStreamed })
    expect([answer.status, answer.text.includes('forbidden')]).toEqual([200, true])
    expect(headersOf(answer)).toMatchObject({ decision: 'allow', holdback })
    expect(await eventOf(answer)).toMatchObject({
      outcome: 'completed',
      decision: 'allow',
      enforced: false,
      policy_id: null,
      matches: [
        matchOf(policy.id, 'request', 'monitoring'),
        matchOf(policy.id, 'response', 'monitoring'),
      ],
    })
    expect(await chargesOf(answer)).toMatchObject([{ input_tokens: 100, output_tokens: 20 }])
  }
  expect(await countsOf(policy.id)).toEqual({
    'request allow monitoring': 2,
    'response allow monitoring': 2,
  })
})

test('the counts of an enforcing policy tell blocked requests and answers apart', async () => {
  const rule = 'cel: direction == "request" ? text.contains("stop") : text.contains("forbidden")'
  const policy = await putInForce(stack(), { rule, direction: 'both' })
  for (const at of targets()) {
    expect((await send('chat', { isStreamed: false }, at)).status).toBe(400)
    const stopped = { isStreamed: false, script: { text: 'stop' } }
    expect((await send('chat', stopped, at)).status).toBe(400)
  }
  expect((await send('chat', { script: { text: 'fine' } })).status).toBe(200)
  expect(await countsOf(policy.id)).toEqual({
    'request refuse enforcing': 2,
    'response refuse enforcing': 2,
  })
})

test('every answer names the epoch it was judged by', async () => {
  const before = headersOf(await send('messages')).epoch
  const policy = await draftPolicy(stack(), { rule: 'cel: text.contains("forbidden")' })
  const epoch = await policy.publish()
  expect(epoch).toBe(before + 1)
  for (const at of targets()) {
    const blocked = await send('responses', {}, at)
    const served = await send('chat', { script: { text: 'fine' } }, at)
    const isSame = { decision: 'allow', epoch }
    expect(headersOf(served)).toMatchObject({ ...isSame, holdback })
    expect(headersOf(blocked)).toMatchObject({ decision: 'refuse', epoch })
    expect(await eventOf(blocked)).toMatchObject({ policy_epoch: epoch })
  }
})

const countAt = (at: Target, text: string) => {
  const messages = [{ role: 'user', content: text }]
  const payload = JSON.stringify({ model: 'claude-scripted', messages })
  return beginRaw(at, { path: '/v1/messages/count_tokens', payload }).answer
}

test('tokens of a blocked request are not counted, and no counter of an upstream sees it', async () => {
  const { upstream_url } = stack().description
  const pathsSeen = async () => {
    const { lastRequests } = await stateOf(upstream_url)
    return lastRequests.map(({ path, body }) => `${path} ${JSON.stringify(body)}`)
  }
  const rule = 'cel: text.contains("forbidden")'
  const policy = await putInForce(stack(), { rule, direction: 'request' })
  for (const at of targets()) {
    await resetUpstream(upstream_url)
    const blocked = await countAt(at, 'a forbidden word')
    expect(blocked.status).toBe(400)
    expect(JSON.parse(blocked.text)).toMatchObject({
      type: 'error',
      error: { type: 'invalid_request_error', code: 'policy_blocked' },
      policy: { policy_id: policy.id, version: 1, reason_code: 'REFUSE' },
    })
    expect(await eventOf(blocked)).toMatchObject({
      ...blockedBy(policy, 'request'),
      policy_target: 'messages.count_tokens',
    })
    expect(await chargesOf(blocked)).toEqual([])
    expect(await pathsSeen()).toEqual([])
    const counted = await countAt(at, 'another word')
    expect(counted.status).toBe(200)
    expect(headersOf(counted)).toMatchObject({ decision: 'allow', holdback: 'none' })
    expect(await pathsSeen()).toEqual([expect.stringContaining('/v1/messages/count_tokens')])
    expect(await eventOf(counted)).toMatchObject({ outcome: 'completed', decision: 'allow' })
  }
})

/** Puts a rule that this release does not know in place of a published one, as another release stored it. */
async function publishUnevaluable(policyId: string, projectId: string) {
  const rule = 'cel: sentiment(text) > 0.5'
  const content = JSON.stringify({
    direction: 'both',
    match_threshold_basis_points: null,
    mode: 'enforcing',
    project_ids: [projectId],
    rule,
    scope: 'projects',
  })
  const client = new pg.Client({ connectionString: stack().database.url })
  await client.connect()
  await client.query('alter table policy_version disable trigger all')
  const { rowCount } = await client.query(
    `with changed as (
      update policy_version set rule = $2, sha256 = sha256(convert_to($3, 'UTF8'))
      where policy_id = $1 returning sha256)
    update policy set published_sha256 = changed.sha256 from changed where policy.id = $1`,
    [policyId, rule, content],
  )
  await client.query('alter table policy_version enable trigger all')
  await client.end()
  expect(rowCount).toBe(1)
}

test('a version that cannot be evaluated closes its own project and no other', async () => {
  const project = await admin().call(createProject, { body: { name: 'Closed' } })
  const params = { project_id: project.id }
  const key = await admin().call(createProjectApiKey, { params, body: { name: 'key' } })
  const scope = { scope: 'projects' as const, project_ids: [project.id] }
  const rule = 'cel: text.contains("never")'
  const policy = await putInForce(stack(), { rule, ...scope })
  await publishUnevaluable(policy.id, project.id)
  // Running processes have compiled the version; one that starts reads it.
  const { baseUrl } = await startAnother()
  const closed = { baseUrl, credential: key.value }
  // Until then it serves by the copy on disk, which the others wrote.
  const askClosed = async () => (await send('chat', {}, closed)).status
  await expect.poll(askClosed).toBe(503)
  for (const format of formats) {
    for (const isStreamed of [true, false]) {
      const refused = await send(format, { isStreamed }, closed)
      expect([refused.status, headersOf(refused).decision]).toEqual([503, 'refuse'])
      expect(refused.text).toContain('policy_evaluation_unavailable')
      expect(await eventOf(refused)).toMatchObject({
        outcome: 'refused',
        enforced: true,
        reason_code: 'RULE_ERROR',
        policy_id: policy.id,
      })
      expect(await chargesOf(refused)).toEqual([])
      const served = await send(format, { isStreamed }, { ...target(), baseUrl })
      expect([served.status, headersOf(served).decision]).toEqual([200, 'allow'])
    }
  }
  expect((await countAt(closed, 'Hello')).status).toBe(503)
  expect((await countAt({ ...target(), baseUrl }, 'Hello')).status).toBe(200)
})

async function startAnother() {
  const api = await stack().startApi('api-3')
  onTestFinished(() => stopProcess(api.child))
  await untilReady(api)
  return api
}
