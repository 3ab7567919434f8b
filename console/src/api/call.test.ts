import { expect, test } from 'vitest'

import { addressOf } from './call.ts'
import { toProblem } from './problem.ts'

test('ids cannot change the path, and what is not given is not sent', () => {
  const address = addressOf(
    '/v1/organization/projects/:project_id/api_keys',
    { project_id: 'a/../b?c' },
    { limit: '100', after: undefined },
  )
  expect(address).toBe('/v1/organization/projects/a%2F..%2Fb%3Fc/api_keys?limit=100')
})

test.each(['', '.', '..'])('the id %j is refused', (id) => {
  expect(() => addressOf('/v1/x/:id', { id })).toThrow('needs an id')
})

test('a refusal has words of ours where there are any, else those of the gateway', () => {
  const owner = toProblem(409, 'req_1', { error: { code: 'last_owner', message: 'No.' } })
  expect([owner.code, owner.requestId]).toEqual(['last_owner', 'req_1'])
  expect(owner.message).toContain('Make another active member an owner first')
  const other = toProblem(422, null, {
    error: { code: 'invalid_parameter', message: 'name is too long', param: 'body.name' },
  })
  expect([other.message, other.param]).toEqual(['name is too long', 'body.name'])
})

test.each([undefined, null, 'text', { error: 'x' }, {}])('a refusal without words: %j', (body) => {
  expect(toProblem(502, null, body)).toMatchObject({ code: 'unknown', status: 502 })
})
