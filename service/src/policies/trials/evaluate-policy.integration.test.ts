import { publishPolicy, updatePolicy } from '@gatehouse/contract/policy'
import {
  evaluatePolicy,
  type PolicyTrialResults,
  replacePolicyExamples,
} from '@gatehouse/contract/policy-evaluation'
import { sql } from 'kysely'
import { beforeEach, expect, test } from 'vitest'

import { createPolicyApi, exactRule } from '#testing/policy-calls.ts'

let house: Awaited<ReturnType<typeof createPolicyApi>>
beforeEach(async () => {
  house = await createPolicyApi()
})

const weapons = { text: 'Two weapons.', direction: 'response' }
const flowers = { text: 'Two flowers.', direction: 'request' }

async function evaluate(policy: { id: string }, body: object) {
  const answer = await house.api.send(evaluatePolicy, { params: { policy_id: policy.id }, body })
  return { ...answer, results: answer.body as unknown as PolicyTrialResults }
}

/** All that is stored. */
async function readAll() {
  const { db } = house.api
  return {
    policies: await db.selectFrom('policy').selectAll().execute(),
    events: await db.selectFrom('event').selectAll().execute(),
    keys: await db.selectFrom('idempotency_key').selectAll().execute(),
  }
}

test('200: says of each text how it comes out, and changes nothing', async () => {
  const policy = await house.create()
  const before = await readAll()
  const { status, results } = await evaluate(policy, { texts: [weapons, flowers] })
  expect(status).toBe(200)
  const result = { judge_calls: 0, took_ms: expect.any(Number) as number }
  const matches = [{ start: 4, end: 10, pattern: 'weapon' }]
  expect(results).toEqual({
    results: [
      { ...result, score: 10_000, matched: true, matches, cut: 4 },
      { ...result, score: 0, matched: false, matches: [], cut: null },
    ],
    holdback: 5,
  })
  expect(await readAll()).toEqual(before)
})

test('200: the draft is tried, or the version that is named', async () => {
  const published = await house.createIn('enforcing')
  await house.change(updatePolicy, published, { rule: 'cel: text.contains("flower")' })
  const matched = async (body: object) =>
    (await evaluate(published, { texts: [weapons, flowers], ...body })).results.results.map(
      (each) => each.matched,
    )
  expect(await matched({})).toEqual([false, true])
  expect(await matched({ version: 1 })).toEqual([true, false])
})

test('404: a version that the policy does not have', async () => {
  const { status, body } = await evaluate(await house.create(), { texts: [weapons], version: 1 })
  expect([status, body.error.code]).toEqual([404, 'version_not_found'])
})

test.each([
  ['Be kind.', 'needs a judge model, which this gateway does not have'],
  ['when: text.contains("x")\nBe kind.', 'needs a judge model, which this gateway does not have'],
])('409: %j cannot be evaluated, and the message says why', async (rule, reason) => {
  const policy = await house.create({ rule })
  const { status, body } = await evaluate(policy, { texts: [weapons] })
  expect([status, body.error.code]).toEqual([409, 'policy_not_evaluable'])
  expect(body.error.message).toContain(`The rule of the draft ${reason}`)
})

test('scores are those of the configured scorers', async () => {
  const policy = await house.create({ rule: 'cel: score("hate") > 0.5', direction: 'both' })
  const hateful = `${'many words '.repeat(30)} [[cat:hate=0.9]]`
  for (const direction of ['request', 'response'] as const) {
    const texts = [hateful, 'kind words'].map((text) => ({ text, direction }))
    const { results, holdback } = (await evaluate(policy, { texts })).results
    expect(results.map(({ matched }) => matched)).toEqual([true, false])
    expect([results[0]?.cut, holdback]).toEqual([direction === 'request' ? null : 329, 288])
  }
})

test('200: what `pii` counts is tried in both directions, with places and the cut', async () => {
  const policy = await house.create({ rule: 'cel: pii("EMAIL") >= 2', direction: 'both' })
  const text = 'From jane＠example.com to joe@example.com, 4111 1111 1111 1111.'
  const texts = (['request', 'response'] as const).map((direction) => ({ text, direction }))
  const { results, holdback } = (await evaluate(policy, { texts })).results
  const pattern = 'pii("EMAIL")'
  const matches = [
    { start: 5, end: 21, pattern },
    { start: 25, end: 40, pattern },
  ]
  expect(results).toMatchObject([
    { matched: true, matches, cut: null },
    { matched: true, matches, cut: 25 },
  ])
  expect(holdback).toBe(520)
  const unbounded = await house.create({ rule: 'cel: pii("EMAIL") == 2', direction: 'both' })
  const whole = (await evaluate(unbounded, { texts })).results
  expect(whole.results.map(({ cut }) => cut)).toEqual([null, 0])
  expect(whole.holdback).toBe('full')
})

test('409: a rule that is not accepted any more', async () => {
  const policy = await house.create()
  await sql`update policy set rule = 'cel: text.matches(' where id = ${policy.id}`.execute(
    house.api.db,
  )
  const { status, body } = await evaluate(policy, { texts: [weapons] })
  expect([status, body.error.code]).toEqual([409, 'policy_not_evaluable'])
  expect(body.error.message).toContain('line 1')
})

test.each([
  [{ texts: [] }, 'body.texts'],
  [{ texts: Array.from({ length: 51 }, () => weapons) }, 'body.texts'],
  [{ texts: [{ ...weapons, direction: 'both' }] }, 'body.texts[0].direction'],
  [{ texts: [{ ...weapons, text: '' }] }, 'body.texts[0].text'],
  [{ texts: [{ ...weapons, text: 'x'.repeat(20_001) }] }, 'body.texts[0].text'],
  [{ texts: [weapons], version: 0 }, 'body.version'],
])('422: %#', async (body, param) => {
  const answer = await evaluate(await house.create(), body)
  expect([answer.status, answer.body.error.param]).toEqual([422, param])
})

test('many long texts leave the event loop free', async () => {
  const rule = 'cel: text.matches("[a-y]{1,100}z") || text.contains("weapon")'
  const policy = await house.create({ rule })
  const texts = Array.from({ length: 12 }, () => ({
    text: 'a flower in a garden '.repeat(950),
    direction: 'response',
  }))
  let longestMs = 0
  let lastMs = performance.now()
  const timer = setInterval(() => {
    longestMs = Math.max(longestMs, performance.now() - lastMs)
    lastMs = performance.now()
  }, 1)
  const { status } = await evaluate(policy, { texts })
  clearInterval(timer)
  console.log(`longest pause of the event loop: ${longestMs.toFixed(1)} ms`)
  expect(status).toBe(200)
  expect(longestMs).toBeLessThan(500)
})

test('an unpublishable draft can be tried, and what is tried is what is published', async () => {
  const example = { ...weapons, expect: 'must_not_match' }
  const draft = await house.create({ rule: exactRule })
  await house.send(replacePolicyExamples, draft, { body: { examples: [example] } })
  const at = { id: draft.id, revision: 2 }
  expect((await house.send(publishPolicy, at)).status).toBe(409)
  expect((await evaluate(draft, { texts: [weapons] })).results.results[0]!.matched).toBe(true)
})
