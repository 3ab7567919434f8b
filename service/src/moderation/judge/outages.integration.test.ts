import { afterAll, beforeAll, expect, test } from 'vitest'

import { ScorerFailure } from '#moderation/scorer.ts'
import {
  type Behaviour,
  createJudgeDouble,
  fails,
  hangsUp,
  type JudgeDouble,
  judges,
  staysSilent,
  writes,
} from '#moderation/testing/judge-double.ts'
import { steadyClock } from '#platform/clock.ts'
import { createCallPool } from '#platform/lines/call-pool.ts'
import { createMetrics } from '#platform/metrics.ts'

import { createJudge, type JudgeOptions } from './create-judge.ts'
import { JudgeFailure } from './judge.ts'
import { createGenericModel } from './models/generic-model.ts'
import { createVerdictCache } from './verdict-cache.ts'

// An operator may let calls pass while the judge is down. No caller must be able to bring that about by what it sends.

let double: JudgeDouble
beforeAll(async () => {
  double = await createJudgeDouble()
})
afterAll(() => double.close())

const createNonce = () => '0123456789abcdef0123456789abcdef'
const openModel = () => createGenericModel({ model: 'judge-1', post: double.post, createNonce })

const openJudge = (options: Partial<JudgeOptions> = {}) =>
  createJudge({
    id: 'generic:judge-1',
    model: openModel(),
    metrics: createMetrics(),
    cache: createVerdictCache(() => new Date(0)),
    now: steadyClock,
    deadlineMs: 300,
    hedgeMs: 100,
    ...options,
  })

const rules = [{ policyId: 'pol_1', version: 1, text: 'No spam.' }]
/** Two pieces. */
const long = 'x'.repeat(30_000)

function ask(judge: ReturnType<typeof openJudge>, text = 'Hello') {
  const content = { direction: 'request' as const, context: '', text }
  const { signal } = new AbortController()
  return judge
    .judge(rules, content, { organizationId: 'org_1', signal })
    .catch((error: JudgeFailure) => error)
}

/** Answers, but too late for everybody. */
const slowly =
  (behaviour: Behaviour): Behaviour =>
  async (...asked) => {
    await new Promise((resolve) => setTimeout(resolve, 400))
    await behaviour(...asked)
  }

test.each<[string, ...Behaviour[]]>([
  ['silence', staysSilent],
  ['500', fails(500)],
  ['429', fails(429)],
  ['a closed connection', hangsUp],
  ['500, and then silence', fails(500), staysSilent],
])('an outage: %s', async (_, ...behaviours) => {
  double.become(...behaviours)
  expect(await ask(openJudge())).toMatchObject({ isOutage: true })
})

test('a judge that is left alone after outages has one', async () => {
  double.become(fails(500))
  const judge = openJudge()
  for (let count = 0; count < 5; count++) await ask(judge, `${count}`)
  expect(judge.isPausing()).toBe(true)
  expect(await ask(judge)).toMatchObject({ isOutage: true })
})

test.each<[string, ...Behaviour[]]>([
  ['nonsense', writes('Hm.')],
  ['nonsense, and then silence', writes('Hm.'), staysSilent],
  ['nonsense, and then 500', writes('Hm.'), fails(500)],
  ['500, and then nonsense', fails(500), writes('Hm.')],
  ['a refusal', fails(403)],
  ['400', fails(400)],
])('no outage: %s', async (_, ...behaviours) => {
  double.become(...behaviours)
  expect(await ask(openJudge())).toMatchObject({ name: 'JudgeFailure', isOutage: false })
})

test('no outage: a text that is too long', async () => {
  expect(await ask(openJudge(), 'x'.repeat(300_001))).toMatchObject({ isOutage: false })
})

test('no outage: too many texts here, so that no turn comes, or it comes too late', async () => {
  double.become(staysSilent)
  const createRefusal = () => new JudgeFailure('overloaded', 'full')
  const pool = createCallPool({ atOnce: 1, waitingMax: 1, waitingOfOneMax: 1, createRefusal })
  await pool.enter('org_2', new AbortController().signal)
  const waiting = ask(openJudge({ pool }))
  expect(await ask(openJudge({ pool }))).toMatchObject({ kind: 'overloaded', isOutage: false })
  expect(await waiting).toMatchObject({ kind: 'late', isOutage: false })

  const last = ask(openJudge({ pool }))
  setTimeout(() => pool.leave(), 250)
  expect(await last).toMatchObject({ kind: 'late', isOutage: false })
  expect(double.requests).toHaveLength(1)
})

test('no outage: this process has too many connections open', async () => {
  const model = {
    ...openModel(),
    ask: () => Promise.reject(new ScorerFailure('overloaded', 'too many calls open')),
  }
  expect(await ask(openJudge({ model }))).toMatchObject({ kind: 'overloaded', isOutage: false })
})

test('no outage: a long text for which there is no time, and the judge is not blamed for it', async () => {
  double.become(slowly(judges(() => 0)))
  const judge = openJudge()
  for (let count = 0; count < 6; count++) {
    expect(await ask(judge, `${count}${long}`)).toMatchObject({ kind: 'late', isOutage: false })
  }
  expect(judge.isPausing()).toBe(false)
})

test('an outage: a long text of which only the last piece is new', async () => {
  double.become(judges(() => 0))
  const judge = openJudge()
  expect(await ask(judge, long)).toBeInstanceOf(Map)
  double.become(staysSilent)
  expect(await ask(judge, `${long} and more`)).toMatchObject({ kind: 'late', isOutage: true })
})
