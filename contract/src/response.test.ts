import { expect, test } from 'vitest'

import { errorsOf } from './endpoint.ts'
import { CreateResponse, createResponse, Response } from './response.ts'

const pathsOf = (body: object) =>
  CreateResponse.safeParse({ model: 'm', ...body }).error?.issues.map(({ path }) => path.join('.'))

test('unknown members stay in the request', () => {
  const body = {
    model: 'm',
    input: [{ role: 'user', content: 'Hi', mystery: 1 }],
    tools: [{ type: 'web_search', filters: {} }],
    reasoning: { effort: 'low', context: 'auto' },
    client_metadata: { a: 'b' },
  }
  expect(CreateResponse.parse(body)).toEqual(body)
})

test('members may be null where they may be left out', () => {
  const nulls = ['input', 'instructions', 'stream', 'temperature', 'tools', 'reasoning', 'text']
  expect(pathsOf(Object.fromEntries(nulls.map((name) => [name, null])))).toBeUndefined()
})

test.each([
  [{ model: '' }, 'model'],
  [{ input: 7 }, 'input'],
  [{ input: [{ role: 'user' }, 'Hi'] }, 'input.1'],
  [{ temperature: 2.1 }, 'temperature'],
  [{ top_p: 1.1 }, 'top_p'],
  [{ max_output_tokens: 0 }, 'max_output_tokens'],
  [{ tools: [{ type: 'function' }, {}] }, 'tools.1.type'],
  [{ flagged_categories: ['hate', 'weather'] }, 'flagged_categories.1'],
])('%j is refused at %s', (body, path) => {
  expect(pathsOf(body)).toEqual([path])
})

test('the answer states the cost of the call', () => {
  const answer = {
    id: 'resp_1',
    object: 'response',
    status: 'completed',
    model: 'm',
    output: [],
    remaining_credits: null,
    estimated_credits_used: 0,
    estimated_cost_usd: 0,
  }
  expect(Response.parse({ ...answer, more: 1 })).toEqual({ ...answer, more: 1 })
  const { estimated_credits_used: _, ...unpaid } = answer
  expect(Response.safeParse(unpaid).success).toBe(false)
})

test('the errors that only this operation has are part of its contract', () => {
  expect(errorsOf(createResponse)).toEqual(
    expect.arrayContaining(['missing_input', 'unsupported_parameter', 'upstream_rejected']),
  )
})
