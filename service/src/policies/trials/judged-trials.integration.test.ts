import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { publishPolicy } from '@gatehouse/contract/policy'
import {
  evaluatePolicy,
  type PolicyExample,
  type PolicyTrialResults,
  replacePolicyExamples,
} from '@gatehouse/contract/policy-evaluation'
import { expect, onTestFinished, test, vi } from 'vitest'

import { createJudgeDouble, fails, judges, staysSilent } from '#moderation/testing/judge-double.ts'
import { createPolicyApi } from '#testing/policy-calls.ts'
import { createTestClock } from '#testing/test-gateway.ts'

// Policies in plain language, tried before they are published. The judge is a double on a socket.

const patience = { timeout: 60_000 }
const judgesRudeness = judges((_, content) => (content.includes('idiot') ? 90 : 5))

async function open(settings: object = { deadline_ms: 400, hedge_ms: 300 }) {
  const double = await createJudgeDouble()
  onTestFinished(() => double.close())
  double.become(judgesRudeness)
  const folder = await mkdtemp(join(tmpdir(), 'moderation-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const file = join(folder, 'moderation.json')
  const judge = { adapter: 'generic', base_url: double.baseUrl, model: 'judge' }
  const scorers = [{ name: 'scripted', adapter: 'scripted' }]
  await writeFile(file, JSON.stringify({ scorers, judge: { ...judge, ...settings } }))
  const clock = createTestClock()
  const house = await createPolicyApi({
    now: clock.now,
    environment: { MODERATION_FILE: file },
  })

  async function evaluate(policy: { id: string }, texts: readonly string[], more: object = {}) {
    const body = { texts: texts.map((text) => ({ text, direction: 'request' })), ...more }
    const answer = await house.api.send(evaluatePolicy, { params: { policy_id: policy.id }, body })
    const { results } = answer.body as unknown as PolicyTrialResults
    return { ...answer, results }
  }
  async function withExamples(policy: { id: string; revision: number }, examples: PolicyExample[]) {
    await house.send(replacePolicyExamples, policy, { body: { examples } })
    return house.read(policy)
  }
  return { ...house, double, clock, evaluate, withExamples }
}

const numbered = (count: number, text: string) =>
  Array.from({ length: count }, (_, number) => `${text} ${number}.`)
const must: PolicyExample = { text: 'You idiot.', direction: 'request', expect: 'must_match' }
const mustNot: PolicyExample = { text: 'Hello.', direction: 'response', expect: 'must_not_match' }

test('200: the judge says how texts come out, and is asked once about each', patience, async () => {
  const { create, evaluate } = await open()
  const policy = await create({ rule: 'Nobody may be rude.', direction: 'both' })
  const texts = ['You idiot.', 'You friend.']
  const { status, results } = await evaluate(policy, texts)
  expect(status).toBe(200)
  expect(results).toMatchObject([
    { score: 9000, matched: true, judge_calls: 1 },
    { score: 500, matched: false, judge_calls: 1 },
  ])
  const again = await evaluate(policy, texts)
  expect(again.results.map(({ score, judge_calls }) => [score, judge_calls])).toEqual([
    [9000, 0],
    [500, 0],
  ])
})

test(
  '200: what was tried of a draft is not taken for what another rule says',
  patience,
  async () => {
    const { create, evaluate, double, publishNext } = await open()
    const policy = await create({ rule: 'Nobody may be rude.', direction: 'both' })
    await evaluate(policy, ['You idiot.'])
    double.become(judges(() => 0))
    const published = await publishNext(policy, 'Nobody may be polite.')
    for (const more of [{}, { version: 1 }]) {
      const { results } = await evaluate(published, ['You idiot.'], more)
      expect(results).toMatchObject([{ score: 0, judge_calls: 1 }])
    }
  },
)

test.each([
  ['is silent', staysSilent],
  ['fails', fails(500)],
  ['refuses this gateway', fails(401)],
])('503: a judge that %s', patience, async (_, behaviour) => {
  const { create, evaluate, withExamples, send, double } = await open()
  double.become(behaviour)
  const policy = await create({ rule: 'Nobody may be rude.', direction: 'both' })
  const { status, body } = await evaluate(policy, ['You idiot.'])
  expect([status, body.error.code]).toEqual([503, 'policy_evaluation_unavailable'])
  const { status: published } = await send(publishPolicy, await withExamples(policy, [must]))
  expect(published).toBe(503)
})

test('429: an organization has 60 calls of the judge in a minute', patience, async () => {
  const { create, evaluate, withExamples, send, double, clock } = await open()
  const policy = await create({ rule: 'Nobody may be rude.', direction: 'both' })
  expect((await evaluate(policy, numbered(50, 'Hello'))).status).toBe(200)
  expect((await evaluate(policy, numbered(10, 'Good morning'))).status).toBe(200)
  const asked = double.requests.length
  const { status, body, headers } = await evaluate(policy, ['Good evening.'])
  expect([status, body.error.code]).toEqual([429, 'rate_limit_exceeded'])
  expect(body.error.message).toContain('calls of the judge in trials')
  expect(headers).toMatchObject({ 'x-ratelimit-limit': '60', 'x-ratelimit-scope': 'organization' })
  expect(Number(headers['retry-after'])).toBeGreaterThan(0)
  // What is known costs nothing, and other calls of the administration are not affected.
  expect((await evaluate(policy, numbered(50, 'Hello'))).status).toBe(200)
  const tried = await withExamples(policy, [must])
  expect((await send(publishPolicy, tried)).status).toBe(429)
  expect(double.requests).toHaveLength(asked)
  clock.pass(61_000)
  expect((await evaluate(policy, ['Good evening.'])).status).toBe(200)
  expect((await send(publishPolicy, tried)).status).toBe(200)
})

test('examples decide whether a draft is published', patience, async () => {
  const { create, withExamples, send, double } = await open()
  const draft = await create({ rule: 'Nobody may be rude.', direction: 'both', mode: 'enforcing' })
  const tried = await withExamples(draft, [must, mustNot])
  double.become(judges(() => 90))
  const refused = await send(publishPolicy, tried)
  expect(refused).toMatchObject({
    status: 409,
    body: { error: { code: 'examples_failing', failing: [{ index: 1, score: 9000 }] } },
  })
  const other = await withExamples(
    await create({ rule: 'No insults.', direction: 'both', mode: 'enforcing' }),
    [must, mustNot],
  )
  double.become(judgesRudeness)
  expect((await send(publishPolicy, other)).status).toBe(200)
})

test('503: examples that take more than 30 seconds', patience, async () => {
  const { create, withExamples, send, double } = await open({ deadline_ms: 10_000, hedge_ms: 9900 })
  const draft = await create({ rule: 'Nobody may be rude.', direction: 'both' })
  const examples = ['one', 'two', 'three', 'four'].map((text) => ({ ...mustNot, text }))
  const tried = await withExamples(draft, examples)
  let answer = () => {}
  double.become(async (request, response) => {
    await new Promise<void>((resolve) => (answer = resolve))
    await judgesRudeness(request, response)
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
  const publishing = send(publishPolicy, tried)
  // Each answer comes in time, but all of them together do not.
  for (let number = 1; number <= 4; number++) {
    while (double.requests.length < number) await new Promise((resolve) => setImmediate(resolve))
    await vi.advanceTimersByTimeAsync(number < 4 ? 9000 : 3001)
    if (number < 4) answer()
  }
  const { status, body } = await publishing
  expect(status).toBe(503)
  expect(body.error.message).toContain('took too long')
})
