import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createPolicy, publishPolicy } from '@gatehouse/contract/policy'
import { saveGatewayConfig, simulateGateway } from '@gatehouse/contract/policy-gateway/gateway'
import { waitUntil } from '@gatehouse/tools/testing/wait-until'
import { expect, onTestFinished, test } from 'vitest'

import { createJudgeDouble, judges } from '#moderation/testing/judge-double.ts'
import { createScorerDouble } from '#moderation/testing/scorer-double.ts'
import { completion, outcomesOf, preparePlainCalls, sendPlain } from '#testing/plain-calls.ts'

// What one organization may have scorers, the judge and the rewriter asked, and what is asked about counts of tokens: nothing.

const patience = { timeout: 60_000 }

type Given = { numbers?: object; hasCounter?: boolean }

/** Calls with a scorer and a judge that are asked over the network, and with these limits of questions. */
async function prepare({ numbers = {}, hasCounter = false }: Given = {}) {
  const scorer = await createScorerDouble()
  onTestFinished(() => scorer[Symbol.asyncDispose]())
  const judge = await createJudgeDouble()
  onTestFinished(() => judge.close())
  judge.become(judges(() => 5))
  const folder = await mkdtemp(join(tmpdir(), 'gatehouse-questions-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = async (name: string, content: object) => {
    await writeFile(join(folder, name), JSON.stringify(content))
    return join(folder, name)
  }
  const environment = {
    LIMITS_FILE: await file('limits.json', { free: { organization: numbers } }),
    MODERATION_FILE: await file('moderation.json', {
      scorers: [{ name: 'remote', adapter: 'openai', base_url: scorer.baseUrl, model: 'm' }],
      judge: { adapter: 'generic', base_url: judge.baseUrl, model: 'judge' },
      rewriter: { model: 'silent' },
    }),
  }
  const settings = hasCounter ? { counter: 'vllm' } : {}
  const calls = await preparePlainCalls({ environment, settings })
  // Counters of upstreams are asked for no stream, and for no plain answer either.
  calls.upstream.behave = (response, number) =>
    sendPlain(
      response,
      'stream' in (calls.upstream.bodies[number - 1] ?? {})
        ? completion('An answer.')
        : { count: 7 },
    )
  const { organizationId } = calls.organization
  const pinned = () => calls.house.policies.inForce.pin(organizationId).snapshot
  let said = 0

  async function post(body: object, path = '/v1/chat/completions') {
    const response = await calls.app.inject({
      method: 'POST',
      url: path,
      headers: { authorization: `Bearer ${calls.credential}` },
      payload: { model: 'm', max_tokens: 50, ...body },
    })
    const { error } = response.json<{ error?: { code?: string; message?: string } }>()
    return {
      status: response.statusCode,
      error,
      headers: response.headers,
      body: response.json<object>(),
    }
  }
  const says = (content: unknown) => ({ messages: [{ role: 'user', content }] })
  return {
    ...calls,
    scorer,
    judge,
    post,
    says,
    /** A call with a text that no scorer has seen. */
    call: (body: object = {}) => post({ ...says(`Hello ${said++}`), ...body }),
    count: (content: unknown) => post(says(content), '/v1/messages/count_tokens'),
    events: async () =>
      (
        await calls.db
          .selectFrom('event')
          .select('header')
          .where('kind', '=', 'enforcement')
          .orderBy('seq')
          .execute()
      ).map(({ header }) => header as Record<string, unknown>),
    async forbidRudeness(direction: 'request' | 'response' | 'both') {
      const draft = {
        name: 'Kind',
        rule: 'Nobody may be rude.',
        scope: 'organization',
        mode: 'enforcing',
      }
      const { body } = await calls.send(createPolicy, { body: { ...draft, direction } as never })
      const before = pinned().epoch
      const params = { policy_id: body.id as string }
      await calls.send(publishPolicy, { params, body: { revision: 1 } })
      await waitUntil(() => pinned().epoch > before)
    },
    async configure(config: object) {
      const before = pinned().epoch
      const { status } = await calls.send(saveGatewayConfig, { body: { config } as never })
      expect(status).toBe(200)
      await waitUntil(() => pinned().epoch > before)
    },
  }
}

test(
  '429: a request that the scorer would be asked about too often in this minute',
  patience,
  async () => {
    // Each call asks about its request; all have the same answer, which is asked about once.
    const calls = await prepare({ numbers: { scorer_questions_per_minute: 4 } })
    for (let i = 0; i < 3; i++) expect((await calls.call()).status).toBe(200)
    const [asked, sent] = [calls.scorer.calls.length, calls.upstream.bodies.length]
    const refused = await calls.call()
    expect(refused).toMatchObject({ status: 429, error: { code: 'rate_limit_exceeded' } })
    expect(refused.error?.message).toContain('scorer questions per minute on organization: limit 4')
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0)
    expect(refused.headers['x-ratelimit-metric']).toBe('requests')
    expect([calls.scorer.calls.length, calls.upstream.bodies.length]).toEqual([asked, sent])
    const { outcomes, held } = await outcomesOf(calls)
    expect(held).toBe(0)
    expect(outcomes).toEqual(['completed', 'completed', 'completed', 'refused'])
    expect((await calls.events()).at(-1)).toMatchObject({
      outcome: 'refused',
      status: 429,
      code: 'rate_limit_exceeded',
    })
    // What is known needs no question.
    expect((await calls.post(calls.says('Hello 0'))).status).toBe(200)
  },
)

test('429: simulations count in the same minute', patience, async () => {
  const calls = await prepare({ numbers: { scorer_questions_per_minute: 2 } })
  const simulate = (text: string) =>
    calls.send(simulateGateway, { body: { scenario: { text } } as never })
  expect((await simulate('one')).status).toBe(200)
  expect((await simulate('two')).status).toBe(200)
  const refused = await simulate('three')
  expect(refused.status).toBe(429)
  expect((await simulate('two')).status).toBe(200)
  expect(calls.scorer.calls).toHaveLength(2)
})

test(
  '429: a request that the judge would be asked about too often in this minute',
  patience,
  async () => {
    const calls = await prepare({ numbers: { judge_questions_per_minute: 2 } })
    await calls.forbidRudeness('request')
    expect([(await calls.call()).status, (await calls.call()).status]).toEqual([200, 200])
    const refused = await calls.call()
    expect(refused).toMatchObject({ status: 429, error: { code: 'rate_limit_exceeded' } })
    expect(refused.error?.message).toContain('judge questions per minute')
    expect(calls.judge.requests).toHaveLength(2)
  },
)

test(
  'an answer is never ended for what it makes others asked, and the next request is refused',
  patience,
  async () => {
    const calls = await prepare({ numbers: { judge_questions_per_minute: 2 } })
    await calls.forbidRudeness('response')
    const long = Array.from({ length: 600 }, (_, i) => `word${i}`).join(' ')
    calls.upstream.behave = (response) => sendPlain(response, completion(long))
    const answered = await calls.call()
    expect(answered.status).toBe(200)
    expect(JSON.stringify(answered.body)).toContain('word599')
    expect(calls.judge.requests.length).toBeGreaterThan(2)
    await waitUntil(async () => {
      const { error } = await calls.call()
      return error?.message?.includes('judge questions per minute') ?? false
    })
  },
)

test(
  'a blocked request is refused plainly where the rewriter was asked too often',
  patience,
  async () => {
    const calls = await prepare({ numbers: { rewriter_questions_per_minute: 2 } })
    await calls.configure({ rules: { denylist: ['zzqx'], rewrite_instead_of_refuse: true } })
    calls.upstream.behave = (response) => sendPlain(response, completion('Kind words.'))
    const statuses = []
    for (let i = 0; i < 4; i++) statuses.push((await calls.post(calls.says(`zzqx ${i}`))).status)
    expect(statuses).toEqual([200, 200, 400, 400])
    expect(calls.upstream.bodies).toHaveLength(2)
  },
)

test(
  'a conversation of thousands of short messages is a few questions, and a match has its place',
  patience,
  async () => {
    const calls = await prepare()
    const conversation = (mark: string) =>
      Array.from({ length: 4001 }, (_, i) => ({
        role: i % 2 === 0 ? 'user' : 'assistant',
        content: i === 1001 ? `w${mark.length} ${mark}` : `w${i}`,
      }))
    expect((await calls.post({ messages: conversation('') })).status).toBe(200)
    // The answer is one of them.
    expect(calls.scorer.calls.length).toBeLessThanOrEqual(3)
    const refused = await calls.post({ messages: conversation('[[cat:self-harm=0.9]]') })
    expect(refused).toMatchObject({ status: 400, error: { code: 'moderation_blocked' } })
    expect(refused.error).toMatchObject({ param: 'messages[1001]' })
  },
)

test(
  'no scorer and no judge is asked about a count of tokens, and its answer and its event say so',
  patience,
  async () => {
    const calls = await prepare({ hasCounter: true })
    await calls.forbidRudeness('request')
    const texts = Array.from({ length: 8000 }, (_, i) => ({ type: 'text', text: `w${i}` }))
    const counted = await calls.count(texts)
    expect(counted.status).toBe(200)
    expect(Object.keys(counted.body)).toEqual(['input_tokens'])
    expect(counted.headers['x-policy-decision']).toBe('allow; unjudged=scorer,judge')
    expect([calls.scorer.calls, calls.judge.requests, calls.upstream.bodies]).toEqual([[], [], []])
    expect(await calls.events()).toMatchObject([
      { policy_target: 'messages.count_tokens', decision: 'allow', unjudged: ['scorer', 'judge'] },
    ])
  },
)

test('what is known of the texts of a count decides about it', patience, async () => {
  const calls = await prepare({ hasCounter: true })
  expect((await calls.post(calls.says('Good morning'))).status).toBe(200)
  const [asked, sent] = [calls.scorer.calls.length, calls.upstream.bodies.length]
  const counted = await calls.count('Good morning')
  expect(counted).toMatchObject({ status: 200, body: { input_tokens: 7 } })
  expect(counted.headers['x-policy-decision']).toBe('allow')
  expect([calls.scorer.calls.length, calls.upstream.bodies.length]).toEqual([asked, sent + 1])
  expect((await calls.events()).at(-1)).not.toHaveProperty('unjudged')

  const bad = 'Words [[cat:sexual/minors=0.97]]'
  expect((await calls.count(bad)).status).toBe(200)
  expect((await calls.post(calls.says(bad))).status).toBe(400)
  expect((await calls.count(bad)).status).toBe(400)
})

test('a count says nothing of a scorer that fails: it is not asked', patience, async () => {
  const calls = await prepare()
  calls.scorer.become(500)
  for (let i = 0; i < 8; i++) expect((await calls.call()).status).toBe(503)
  const counted = await calls.count('Good evening')
  expect(counted.status).toBe(200)
  expect(counted.headers['x-policy-decision']).toBe('allow; unjudged=scorer')
})
