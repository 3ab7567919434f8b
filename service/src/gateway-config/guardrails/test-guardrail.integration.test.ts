import { sql } from 'kysely'
import { expect, onTestFinished, test } from 'vitest'

import { createGuardrailDouble, guardrailSecret } from '#moderation/testing/guardrail-double.ts'
import { createTestApi } from '#testing/test-api.ts'
import { createProject } from '#testing/test-gateway.ts'

import { guardrailCalls } from './testing/guardrail-calls.ts'

async function openApi() {
  const double = await createGuardrailDouble()
  onTestFinished(() => double[Symbol.asyncDispose]())
  const environment = { EXPORT_PRIVATE_TARGETS: new URL(double.url).host }
  const api = await createTestApi({ environment })
  const calls = guardrailCalls(api)
  const create = async (body: object = {}) => {
    const { guardrail } = await calls.create({ url: double.url, secret: guardrailSecret, ...body })
    return guardrail.id
  }
  return { api, calls, double, create }
}

const took_ms = expect.any(Number) as number
const failed = (error: string) => ({
  ok: false,
  action: null,
  code: null,
  reason: null,
  took_ms,
  error,
})

test('200: the guardrail gets one signed question that is marked as a test, and its answer is shown', async () => {
  const { api, calls, double, create } = await openApi()
  const projectId = await createProject(api.house, api.organization.organizationId)
  const id = await create({ enabled: false, project_ids: [projectId] })
  const ask = async (body?: object) => (await calls.ask(id, body)).result
  const allowed = { ok: true, action: 'allow', code: null, reason: null, took_ms, error: null }
  expect(await ask()).toEqual(allowed)
  expect(double.questions).toEqual([
    {
      id: expect.any(String) as string,
      is_test: true,
      direction: 'request',
      organization_id: api.organization.organizationId,
      project_id: projectId,
      request_id: expect.stringMatching(/^req_/) as string,
      model: '',
      is_last: true,
      texts: [
        {
          index: 0,
          role: 'user',
          text: 'This is a test: an administrator tried this guardrail.',
          new_from: 0,
        },
      ],
    },
  ])
  expect(await ask({ text: 'a forbidden word' })).toEqual({
    ...allowed,
    action: 'block',
    code: 'word',
    reason: 'A word is not allowed.',
  })
  expect(await ask({ text: 'Call 555-1234.' })).toEqual({
    ...allowed,
    action: 'rewrite',
    code: 'number',
  })
  expect(double.signatures).toEqual(['right', 'right', 'right'])
})

test('200: what is wrong with its answer is said, without the secret', async () => {
  const { calls, double, create } = await openApi()
  const id = await create({ deadline_ms: 300 })
  const failures = [
    [401, 'The guardrail refused the question with 401.'],
    [500, 'The guardrail answered 500.'],
    [302, 'The guardrail answered 302.'],
    ['hangs', 'The guardrail did not answer in time.'],
    [{ raw: guardrailSecret }, 'The answer of the guardrail breaks its contract: it is not JSON.'],
  ] as const
  for (const [behaviour, error] of failures) {
    double.become(behaviour)
    const { status, result } = await calls.ask(id)
    expect([status, result]).toEqual([200, failed(error)])
    expect(result.took_ms).toBeLessThan(3000)
  }
})

test('422: a text has 1 to 2000 characters, and nothing else can be given', async () => {
  const { calls, double, create } = await openApi()
  const id = await create()
  for (const [body, param] of [
    [{ text: '' }, 'body.text'],
    [{ text: 'x'.repeat(2001) }, 'body.text'],
    [{ texts: [] }, 'body.texts'],
  ] as const) {
    const { status, error } = await calls.ask(id, body)
    expect([status, error.param]).toEqual([422, param])
  }
  expect((await calls.ask(id, { text: '😀'.repeat(2000) })).status).toBe(200)
  expect(double.questions).toHaveLength(1)
})

test('404: a guardrail that does not exist is not asked', async () => {
  const { calls, create } = await openApi()
  await create()
  const { status, error } = await calls.ask('grd_000000000000000000000000')
  expect([status, error.code]).toEqual([404, 'guardrail_not_found'])
})

test('a secret that no master key opens, or of another guardrail, is not used', async () => {
  const { api, calls, double, create } = await openApi()
  const id = await create()
  const other = await create({ name: 'Other' })
  await sql`
    update guardrail set secret = (select secret from guardrail where id = ${id})
    where id = ${other}`.execute(api.db)
  const { result } = await calls.ask(other)
  expect(result).toEqual(failed('Its secret cannot be opened; save it once more.'))
  expect(double.questions).toEqual([])
  expect((await calls.edit(other, { secret: guardrailSecret })).status).toBe(200)
  expect((await calls.ask(other)).result.ok).toBe(true)
})
