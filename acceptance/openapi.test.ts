import { createHmac } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { dialects } from '@gatehouse/contract/error-body'
import { createOrganization } from '@gatehouse/tools/start-stack'
import { beforeAll, describe, expect, test } from 'vitest'

import { type Answer, call, codeOf } from './support/call.ts'
import { description, operations } from './support/description.ts'
import {
  type Changes,
  exampleCalls,
  exampleIn,
  exampleModels,
  type Json,
} from './support/example-calls.ts'
import { useStack } from './support/use-stack.ts'

// The examples of the description, sent to a running service: every operation answers what the description says. `call`
// compares every answer of this and of all other tests with it.

const stripeSecret = 'whsec_0123456789abcdef0123456789abcdef'
const stack = useStack({
  models: exampleModels,
  environment: { STRIPE_WEBHOOK_SECRETS: stripeSecret },
})

const answers = new Map<string, Json>()
/** One call of every operation, in an order in which each finds what it needs. */
const calls = exampleCalls(answers)

const endpointOf = (id: string): Endpoint => {
  const endpoint = endpoints.find((each) => each.id === id)
  if (!endpoint) throw new Error(`The contract has no operation ${id}.`)
  return endpoint
}

const credentialFor = ({ credentials }: Endpoint) => {
  const { admin_key, project_key } = stack().description
  if (credentials.length === 0) return undefined
  return credentials.some((kind) => kind === 'admin_key') ? admin_key : project_key
}

/** Stripe signs the bytes of the body. */
function sign(raw: string): Record<string, string> {
  const time = Math.floor(Date.now() / 1000)
  const signature = createHmac('sha256', stripeSecret).update(`${time}.${raw}`).digest('hex')
  return { 'stripe-signature': `t=${time},v1=${signature}` }
}

async function send(id: string, changes: Changes = {}, credential?: string): Promise<Answer> {
  const endpoint = endpointOf(id)
  const example = exampleIn(operations.get(id)!)
  const body = example.body && { ...example.body, ...changes.body }
  const raw = body && JSON.stringify(body)
  return call(stack().description.base_url, endpoint, {
    credential: credential ?? credentialFor(endpoint),
    params: { ...example.params, ...changes.params },
    query: { ...example.query, ...changes.query },
    ...(raw !== undefined && { raw }),
    headers: {
      ...(id === 'receiveStripeEvent' && sign(raw ?? '')),
      ...changes.headers,
    },
  })
}

/** A proof needs a checkpoint, which the worker signs within seconds. */
async function sendUntilReady(id: string, changes: Changes): Promise<Answer> {
  const answer = await send(id, changes)
  if (codeOf(answer) !== 'proof_not_ready') return answer
  await sleep(500)
  return sendUntilReady(id, changes)
}

test('every operation of the description has a call here', () => {
  expect(Object.keys(calls).toSorted()).toEqual([...operations.keys()].toSorted())
})

test('the service serves the description that is checked here', async () => {
  const response = await fetch(`${stack().description.base_url}/openapi.json`)
  expect(await response.json()).toEqual(description)
})

/** Only members who have signed in approve anything and have sessions: a key is refused, as described. */
const ofMembers: readonly string[] = [
  'deleteMemberSession',
  'approvePolicy',
  'withdrawPolicyApproval',
  'approveGatewayProposal',
]

test.each(ofMembers)('%s refuses keys as described', async (id) => {
  expect(codeOf(await send(id))).toMatch(/^(permission_denied|policy_not_found|member_not_found)$/)
})

const ofKeys = Object.keys(calls).filter((id) => !ofMembers.includes(id))

describe('the example of', () => {
  test.each(ofKeys)('%s is answered as described', async (id) => {
    const answer = await sendUntilReady(id, calls[id]!())
    expect(answer.status, answer.text).toBe(endpointOf(id).successStatus)
    answers.set(id, answer.json as Json)
  })
})

const modelCalls = ['createMessage', 'createResponse', 'createChatCompletion']
const limitedCalls = [...modelCalls, 'countTokens']

test.each(modelCalls)('%s streams as described', async (id) => {
  const answer = await send(id, { body: { stream: true } })
  expect(answer.headers.get('content-type')).toBe('text/event-stream; charset=utf-8')
  expect(answer.headers.get('x-accel-buffering')).toBe('no')
})

test('a key can be sent in x-api-key', async () => {
  const headers = { 'x-api-key': stack().description.project_key }
  const answer = await call(stack().description.base_url, endpointOf('listModels'), { headers })
  expect(answer.status).toBe(200)
})

test('a repeated change is answered as described', async () => {
  const answer = await send('createProject', { headers: { 'idempotency-key': 'k1' } })
  expect([answer.status, answer.headers.get('idempotent-replayed')]).toEqual([201, 'true'])
})

const missing = 'proj_00000000000000000000000000'
type Refused = { id: string; changes: Changes; status: number; code: string }
const model = 'none'
/** At least one of every family of error bodies. */
const refusals: readonly Refused[] = [
  {
    id: 'retrieveProject',
    changes: { params: { project_id: missing } },
    status: 404,
    code: 'project_not_found',
  },
  { id: 'createProject', changes: { body: { colour: 'red' } }, status: 422, code: 'unknown_field' },
  { id: 'listPolicies', changes: { query: { after: 'x' } }, status: 400, code: 'invalid_cursor' },
  { id: 'createMessage', changes: { body: { model } }, status: 404, code: 'model_not_found' },
  {
    id: 'countTokens',
    changes: { body: { messages: [] } },
    status: 422,
    code: 'invalid_parameter',
  },
  { id: 'countTokens', changes: { body: { model } }, status: 404, code: 'model_not_found' },
  { id: 'createResponse', changes: { body: { model } }, status: 404, code: 'model_not_found' },
  {
    id: 'createResponse',
    changes: { body: { model }, headers: { 'x-stainless-lang': 'js' } },
    status: 404,
    code: 'model_not_found',
  },
  {
    id: 'createChatCompletion',
    changes: { body: { model } },
    status: 404,
    code: 'model_not_found',
  },
  {
    id: 'retrieveModel',
    changes: { params: { model_id: model } },
    status: 404,
    code: 'unknown_model',
  },
]

test('the refusals are of every family', () => {
  const families = refusals.map(({ id }) => endpointOf(id).dialect)
  expect(new Set(families)).toEqual(new Set(dialects))
})

test.each(refusals)('$id: $status $code is as described', async ({ id, changes, status, code }) => {
  const answer = await send(id, changes)
  expect([answer.status, codeOf(answer)]).toEqual([status, code])
})

test.each([...limitedCalls, 'readCredits', 'createPolicy'])(
  '%s: 401 is as described',
  async (id) => {
    expect((await send(id, {}, 'nothing')).status).toBe(401)
  },
)

describe('an organization without credits', () => {
  let key = ''
  beforeAll(async () => {
    const { admin_key, project_id } = await createOrganization(
      stack().service,
      'Poor Ltd',
      '0.000001',
    )
    const made = await send('createProjectApiKey', { params: { project_id } }, admin_key)
    key = (made.json as { value: string }).value
  })

  test.each(modelCalls)('%s: 402 is as described', async (id) => {
    const answer = await send(id, {}, key)
    expect([answer.status, codeOf(answer)]).toEqual([402, 'insufficient_credits'])
  })

  test('429 is as described, in every family of model callers', async () => {
    for (let count = 0; count < 60; count++) await send('listModels', {}, key)
    for (const id of [...limitedCalls, 'listModels']) {
      const answer = await send(id, {}, key)
      expect([id, answer.status, codeOf(answer)]).toEqual([id, 429, 'rate_limit_exceeded'])
    }
  })

  test('429 is as described for reads of the balance', async () => {
    const statuses: number[] = []
    for (let count = 0; count < 61; count++)
      statuses.push((await send('readCredits', {}, key)).status)
    expect(statuses).toContain(429)
  })
})
