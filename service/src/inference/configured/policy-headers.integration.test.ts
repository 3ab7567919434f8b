import { createProject } from '@gatehouse/contract/project'
import { sql } from 'kysely'
import { expect, test } from 'vitest'

import { completion, type PlainCalls, preparePlainCalls, sendPlain } from '#testing/plain-calls.ts'

const routes = [
  ['/v1/messages', { max_tokens: 5 }],
  ['/v1/chat/completions', {}],
  ['/v1/responses', { input: 'Hello', messages: undefined }],
  ['/v1/messages/count_tokens', {}],
] as const

const post = (
  calls: PlainCalls,
  headers: Record<string, string>,
  [url, body] = routes[1] as Route,
) =>
  calls.app.inject({
    method: 'POST',
    url,
    headers: { authorization: `Bearer ${calls.credential}`, ...headers },
    payload: { model: 'm', messages: [{ role: 'user', content: 'Hello' }], ...body },
  })
type Route = (typeof routes)[number]

async function eventsOf({ house, organization }: PlainCalls) {
  const { rows } = await sql<{ header: Record<string, unknown> }>`
    select header from event where kind = 'enforcement'
      and organization_id = ${organization.organizationId} order by seq`.execute(house.db)
  return rows.map(({ header }) => header)
}

test.for(routes)(
  '400: a malformed header is refused by %s, and reaches no provider',
  async (route) => {
    const calls = await preparePlainCalls()
    for (const [name, value] of [
      ['X-Policy-User', 'a'.repeat(201)],
      ['X-Policy-Target', 'gr\u00fcn'],
    ] as const) {
      const answer = await post(calls, { [name]: value }, route)
      expect([answer.statusCode, answer.body]).toEqual([400, expect.stringContaining(name)])
    }
    expect(calls.upstream.bodies).toEqual([])
    const refused = { outcome: 'refused', status: 400, code: 'invalid_request' }
    expect(await eventsOf(calls)).toMatchObject([refused, refused])
  },
)

test('the event names user and target, and no model provider gets the headers', async () => {
  const calls = await preparePlainCalls()
  const sent: string[] = []
  calls.upstream.behave = (response) => {
    sent.push(...Object.keys(response.req.headers))
    sendPlain(response, completion('Hello'))
  }
  const headers = { 'X-Policy-User': 'ada', 'X-Policy-Target': 'support bot' }
  expect((await post(calls, headers)).statusCode).toBe(200)
  expect((await post(calls, {})).statusCode).toBe(200)
  const [named, plain] = await eventsOf(calls)
  expect(named).toMatchObject({ policy_user: 'ada', policy_target: 'support bot' })
  expect(plain).toMatchObject({ policy_target: 'chat.completions' })
  expect(plain).not.toHaveProperty('policy_user')
  expect(sent.filter((name) => name.startsWith('x-policy'))).toEqual([])
})

test('with a project key, X-Policy-Project must be the project of the key', async () => {
  const calls = await preparePlainCalls()
  calls.upstream.behave = (response) => sendPlain(response, completion('Hello'))
  const codeIn = async (project: string) => {
    const answer = await post(calls, { 'X-Policy-Project': project })
    const { error } = answer.json<{ error?: { code: string } }>()
    return [answer.statusCode, error?.code]
  }
  const other = await calls.send(createProject, { body: { name: 'Other' } })
  expect(await codeIn(calls.organization.projectId)).toEqual([200, undefined])
  expect(await codeIn(other.body.id)).toEqual([403, 'wrong_project'])
  for (const unknown of ['proj_none', 'x'.repeat(300)]) {
    expect(await codeIn(unknown)).toEqual([404, 'project_not_found'])
  }
})
