import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import {
  createPolicy,
  pausePolicy,
  type PolicyCreation,
  publishPolicy,
} from '@gatehouse/contract/policy'
import { saveGatewayConfig } from '@gatehouse/contract/policy-gateway/gateway'
import { hiddenScript } from '@gatehouse/tools/scripted-upstream/script'
import { startScriptedUpstream } from '@gatehouse/tools/scripted-upstream/server'
import { stackModels } from '@gatehouse/tools/stack-models'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished } from 'vitest'

import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { systemClock } from '#platform/clock.ts'
import { createIssuerDouble } from '#testing/issuer-double.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

// For tests: every way in which a call can reach a model.

const all: readonly Endpoint[] = endpoints
/** Everything that takes a request for a model. A new one fails here until it has a body below. */
const routes = all.filter(
  ({ permission, method }) => permission === 'model.invoke' && method === 'POST',
)
const models = ['claude-scripted', 'chat-scripted', 'responses-scripted'] as const
const shapes = ['streamed', 'plain', 'folded'] as const
const callers = ['key', 'token', 'anonymous'] as const

const answerText = 'Forty-two.'

/** What is asked, and what the model says then. */
type Talk = { asked?: string; answered?: string }

/** A talk, with headers and members of the body that are not part of it. */
type Asked = Talk & { headers?: object; members?: object }

/** The upstream reads its script in the request, where the answer is in base64 so that no rule and no scorer sees it. */
function promptOf({ asked = 'Go.', answered = answerText }: Talk): string {
  return `${asked}\n${hiddenScript({ text: answered })}`
}

type Caller = (typeof callers)[number]
export type Call = {
  endpoint: Endpoint
  model: (typeof models)[number]
  shape: (typeof shapes)[number]
  caller: Caller
}

/** Longer plain answers are streamed from the upstream and folded. */
const limitOf = (shape: Call['shape']) => (shape === 'folded' ? 9000 : 500)

const messagesOf = (content: string) => [{ role: 'user', content }]
const bodies: Record<string, (shape: Call['shape'], prompt: string) => object> = {
  createMessage: (shape, prompt) => ({ max_tokens: limitOf(shape), messages: messagesOf(prompt) }),
  createResponse: (shape, prompt) => ({ max_output_tokens: limitOf(shape), input: prompt }),
  createChatCompletion: (shape, prompt) => ({
    max_completion_tokens: limitOf(shape),
    messages: messagesOf(prompt),
  }),
  countTokens: (_, prompt) => ({ messages: messagesOf(prompt) }),
}

export const isCounting = ({ id }: Endpoint) => id === 'countTokens'
const shapesOf = (endpoint: Endpoint) => (isCounting(endpoint) ? (['plain'] as const) : shapes)
const callersOf = ({ takesFreeRequests }: Endpoint) =>
  callers.filter((caller) => caller !== 'anonymous' || takesFreeRequests)

/** Every endpoint, model, shape of the answer and kind of caller. */
export const everyWay: readonly Call[] = routes.flatMap((endpoint) =>
  models.flatMap((model) =>
    shapesOf(endpoint).flatMap((shape) =>
      callersOf(endpoint).map((caller) => ({ endpoint, model, shape, caller })),
    ),
  ),
)

const many = {
  requests_per_minute: 100_000,
  requests_per_day: 1_000_000,
  tokens_per_minute: 1e9,
  concurrent_requests: 1000,
}

async function writeFiles(scripted: string) {
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-catalogue-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'models.json')
  await writeFile(file, JSON.stringify(stackModels({ scripted })))
  const limits = join(folder, 'limits.json')
  await writeFile(
    limits,
    JSON.stringify({ free: { organization: many, project: many, key: many } }),
  )
  return { MODELS_FILE: file, LIMITS_FILE: limits, STATE_DIRECTORY: folder }
}

/** An API with a scripted upstream, where every way is open. */
export async function openEveryWay(environment: Record<string, string> = {}) {
  let served = 0
  const upstream = await startScriptedUpstream({ onAnswered: () => void served++ })
  onTestFinished(upstream.stop)
  const issuer = await createIssuerDouble(systemClock)
  onTestFinished(() => issuer[Symbol.asyncDispose]())
  const files = await writeFiles(upstream.url)
  const api = await createTestApi({
    environment: (organizationId) => ({
      ...files,
      ...environment,
      UPSTREAM_KEY: 'scripted',
      FREE_REQUESTS_PER_DAY: '1000',
      FREE_REQUEST_CREDITS_MAX: '1000000000',
      EGRESS_PRIVATE_TARGETS: issuer.host,
      JWT_ISSUERS: JSON.stringify([
        {
          issuer: issuer.issuer,
          jwks_url: issuer.jwksUrl,
          audience: issuer.audience,
          organizations: [organizationId],
          permissions: { use: ['model.invoke'] },
        },
      ]),
    }),
  })
  const { organizationId } = api.organization
  await waitUntil(api.house.policies.areKnown)
  await grantCredits(
    organizationId,
    { id: 'enough', amount: 1_000_000_000n },
    { ...api.house, by: operator },
  )
  const { value: key } = await createProjectKey(api.house, api.organization)
  const token = await issuer.sign({ organization_id: organizationId, scope: 'use' })
  let addresses = 0
  let latest = ''
  const credentialOf = (caller: 'key' | 'token') => (caller === 'key' ? key : token)
  const headersOf = (caller: Caller): Record<string, string> => {
    if (caller === 'anonymous') return { 'x-free-tier': 'true' }
    return { authorization: `Bearer ${credentialOf(caller)}` }
  }

  async function send(
    { endpoint, model, shape, caller }: Call,
    { headers, members, ...talk }: Asked = {},
  ) {
    const body = bodies[endpoint.id]?.(shape, promptOf(talk))
    if (!body) throw new Error(`${endpoint.id} reaches a model and is not tested here.`)
    for (;;) {
      addresses++
      const answer = await api.app.inject({
        method: 'POST',
        url: endpoint.path,
        remoteAddress: `192.0.${addresses >> 8}.${addresses & 255}`,
        headers: { ...headersOf(caller), ...headers },
        payload: { model, ...body, ...(shape === 'streamed' && { stream: true }), ...members },
      })
      // On a slow machine one process cannot take all these calls at once.
      if (answer.statusCode < 500 || !answer.body.includes('overloaded')) return answer
    }
  }

  /** What came of a call, in a word. */
  async function ask(call: Call, asked?: Asked): Promise<string> {
    const answer = await send(call, asked)
    const isBlocked = /\b(?:policy|moderation)_blocked/.test(answer.body)
    const isAnswered = answer.body.includes('Forty') || answer.body.includes('input_tokens":')
    if (answer.statusCode === 400 && isBlocked && !isAnswered) return 'blocked'
    if (answer.statusCode === 200 && isBlocked && !answer.body.includes('Forty')) return 'blocked'
    return answer.statusCode === 200 && isAnswered
      ? 'served'
      : `${answer.statusCode} ${answer.body}`
  }

  async function putInForce(creation: Partial<PolicyCreation>, isPaused: boolean) {
    const draft = { name: 'All', rule: 'cel: true', scope: 'organization', ...creation }
    const created = await api.send(createPolicy, { body: draft })
    expect(created).toMatchObject({ status: 201 })
    const { id } = created.body
    latest = id
    const change = (endpoint: Endpoint, revision: number) =>
      api.send(endpoint, { params: { policy_id: id }, body: { revision } })
    const before = epoch()
    expect((await change(publishPolicy, 1)).status).toBe(200)
    if (isPaused) await change(pausePolicy, 2)
    await waitUntil(() => epoch() === before + (isPaused ? 2 : 1))
    return async () => {
      if (isPaused) return
      await change(pausePolicy, 2)
      await waitUntil(() => epoch() === before + 2)
    }
  }
  const epoch = () => api.house.policies.inForce.pin(organizationId).snapshot.epoch

  /** Saves a configuration of the policy gateway, and waits until it decides. */
  async function configure(config: object) {
    const before = epoch()
    expect((await api.send(saveGatewayConfig, { body: { config } })).status).toBe(200)
    await waitUntil(() => epoch() === before + 1)
  }

  /** `policyId`: of the policy that was put in force last. */
  return {
    api,
    upstream,
    credentialOf,
    send,
    ask,
    putInForce,
    configure,
    policyId: () => latest,
    served: () => served,
  }
}

export const nameOf = ({ endpoint, model, shape, caller }: Call) =>
  `${endpoint.id} ${model} ${shape} ${caller}`
