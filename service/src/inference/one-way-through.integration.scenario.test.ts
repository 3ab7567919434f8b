import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'

import type { Endpoint } from '@gatehouse/contract/endpoint'
import { endpoints } from '@gatehouse/contract/endpoints'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import type { House } from '#assemble.ts'
import { operator } from '#audit/event.ts'
import { grantCredits } from '#credits/payments/payments.ts'
import { writeCatalogueOfOne } from '#testing/catalogue-of-one.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProjectKey } from '#testing/test-gateway.ts'

import type { CallChecks } from './enforcement/call-checks.ts'
import type { CheckedRequest } from './enforcement/findings.ts'
import type { CallSteps } from './run-inference.ts'

// No route reaches a model but through every step of the pipeline, in its order.

const all: readonly Endpoint[] = endpoints
const callers = all.filter(({ permission }) => permission === 'model.invoke')
const reachesModel = ['createMessage', 'createResponse', 'createChatCompletion']
const order: (keyof CallSteps | keyof CallChecks)[] = [
  ...(['openMeter', 'admit', 'openRecord', 'openChecks', 'beforeHold', 'reserve'] as const),
  ...(['afterHold', 'guard', 'callModel'] as const),
]

const bodies: Record<string, object> = {
  createMessage: { max_tokens: 5, messages: [{ role: 'user', content: 'Hello' }] },
  createResponse: { input: 'Hello' },
  createChatCompletion: { messages: [{ role: 'user', content: 'Hello' }] },
}

/** The smallest upstream there is: one word of Chat Completions. */
async function startUpstream() {
  const chunk = (delta: object, finish_reason: string | null) =>
    `data: ${JSON.stringify({ id: 'c', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`
  const calls: string[] = []
  const server = createServer((request, response) => {
    calls.push(request.url ?? '')
    request.resume().once('end', () => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.end(`${chunk({ content: 'Hi' }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`, calls }
}

/** Real steps that write down when they are taken. */
function watched(house: House, taken: string[]): House {
  const entries = Object.entries(house.inference.steps).map(([name, step]) => [
    name,
    (...given: unknown[]) => {
      taken.push(name)
      return (step as (...given: unknown[]) => unknown)(...given)
    },
  ])
  const steps = Object.fromEntries(entries) as CallSteps
  const openChecks: CallSteps['openChecks'] = async (...given) =>
    watchedChecks(await steps.openChecks(...given), taken)
  return { ...house, inference: { ...house.inference, steps: { ...steps, openChecks } } }
}

function watchedChecks<Request extends CheckedRequest>(
  checks: CallChecks<Request>,
  taken: string[],
): CallChecks<Request> {
  return {
    get request() {
      return checks.request
    },
    get growthMost() {
      return checks.growthMost
    },
    findings: checks.findings,
    beforeHold() {
      taken.push('beforeHold')
      return checks.beforeHold()
    },
    afterHold() {
      taken.push('afterHold')
      return checks.afterHold()
    },
    guard(callModel) {
      taken.push('guard')
      return checks.guard(callModel)
    },
  }
}

async function prepare() {
  const upstream = await startUpstream()
  const taken: string[] = []
  const MODELS_FILE = await writeCatalogueOfOne(upstream.url)
  const environment = { MODELS_FILE, STATE_DIRECTORY: dirname(MODELS_FILE) }
  const change = (house: House) => watched(house, taken)
  const api = await createTestApi({ environment, change })
  // Nothing is let through before the policies are known.
  await waitUntil(api.house.policies.areKnown)
  const { value: credential } = await createProjectKey(api.house, api.organization)
  const gift = { id: 'enough', amount: 1_000_000n }
  await grantCredits(api.organization.organizationId, gift, { ...api.house, by: operator })
  return { ...api, upstream, taken, credential }
}

test('a caller who may call models has these endpoints, and only three of them reach one', () => {
  expect(callers.map(({ id }) => id).toSorted()).toEqual(
    [...reachesModel, 'countTokens', 'listModels', 'retrieveModel'].toSorted(),
  )
})

test.each(reachesModel.flatMap((id) => [true, false].map((stream) => ({ id, stream }))))(
  '$id with stream $stream takes every step, in order, and reaches the model once',
  async ({ id, stream }) => {
    const { app, upstream, taken, credential } = await prepare()
    const endpoint = callers.find((each) => each.id === id)!
    const response = await app.inject({
      method: 'POST',
      url: endpoint.path,
      headers: { authorization: `Bearer ${credential}` },
      payload: { model: 'm', stream, ...bodies[id] },
    })
    expect([response.statusCode, response.body]).toEqual([200, expect.stringContaining('Hi')])
    expect(taken).toEqual(order)
    expect(upstream.calls).toEqual(['/v1/chat/completions'])
  },
)

test('no other route reaches a model, whatever it is sent; a count of tokens is checked', async () => {
  const { app, routes, upstream, taken, credential, organization } = await prepare()
  const others = routes.filter(({ endpoint }) => !reachesModel.includes(endpoint?.id ?? ''))
  expect(others.length).toBeGreaterThan(30)
  for (const { method, url, endpoint } of others) {
    const isCaller = endpoint?.permission === 'model.invoke'
    await app.inject({
      method: method as 'POST',
      url: url.replaceAll(/:\w+/g, 'm'),
      headers: { authorization: `Bearer ${isCaller ? credential : organization.adminKey}` },
      ...(method === 'POST' && { payload: { model: 'm', ...bodies['createMessage'] } }),
    })
  }
  expect([taken, upstream.calls]).toEqual([['openChecks', 'beforeHold', 'afterHold'], []])
})
