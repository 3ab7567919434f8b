import { afterEach, beforeEach, expect, test } from 'vitest'

import { createGuardrailDouble, guardrailSecret } from '#moderation/testing/guardrail-double.ts'
import { createTenantEgress, type Egress } from '#platform/egress.ts'
import type { Log } from '#platform/log.ts'
import { createMetrics, type Metrics } from '#platform/metrics.ts'
import { createOriginPools, type OriginPools } from '#platform/origin-pools.ts'
import { silentLog } from '#testing/silent-log.ts'

import { type AskForCall, createGuardrails } from './create-guardrails.ts'
import type { Guardrail } from './guardrail.ts'
import { createSendQuestion } from './send-question.ts'

let double: Awaited<ReturnType<typeof createGuardrailDouble>>
let pools: OriginPools
let egress: Egress
let metrics: Metrics
let ask: AskForCall
let nowMs = 0
let logged: string[] = []

beforeEach(async () => {
  double = await createGuardrailDouble()
  pools = createOriginPools()
  egress = createTenantEgress({
    privateTargets: [new URL(double.url).host],
    limits: { connections: 32, callsMax: 1024 },
  })
  metrics = createMetrics()
  logged = []
  ask = createGuardrails({
    send: createSendQuestion({ pools, egress }),
    now: () => new Date(),
    steadyNow: () => new Date(nowMs),
    log: {
      ...silentLog,
      problem: (code, error) => void logged.push(`${code} ${String(error)}`),
    } satisfies Log,
    metrics,
  })
})
afterEach(async () => {
  await pools.close()
  await egress.close()
  await double[Symbol.asyncDispose]()
})

const never = new AbortController().signal

function put(text = 'a', guardrail: Partial<Guardrail> = {}, signal: AbortSignal = never) {
  const question = {
    id: 'grq_1',
    direction: 'request',
    organizationId: 'org_secret',
    projectId: 'proj_1',
    requestId: 'req_1',
    model: 'm',
    isLast: true,
    texts: [{ role: 'user', text }],
  } as const
  const usual: Guardrail = {
    name: 'house',
    id: null,
    mode: 'enforcing',
    onError: 'refuse',
    deadlineMs: 200,
    url: double.url,
    secret: guardrailSecret,
  }
  return ask({ ...usual, ...guardrail }, question, signal)
}

const problemOf = async (asked: ReturnType<typeof put>) => {
  const outcome = await asked
  return outcome.kind === 'failed' ? outcome.failure.problem : outcome.kind
}

test('one that keeps failing is left alone for a while, and asked again after it', async () => {
  double.become(500)
  for (let count = 0; count < 5; count++) expect(await problemOf(put())).toBe('status')
  expect(await problemOf(put())).toBe('paused')
  expect(double.questions).toHaveLength(5)
  nowMs += 5000
  double.become('answers')
  expect(await problemOf(put())).toBe('allow')
  expect(await problemOf(put())).toBe('allow')
})

test('a refusal stays one while the guardrail is left alone: it lets nothing pass', async () => {
  double.become(401)
  for (let count = 0; count < 5; count++) await put()
  const outcome = await put()
  expect(outcome).toMatchObject({ failure: { problem: 'paused', isMisconfigured: true } })
})

test('answers that break the contract do not keep it from others: a text may be the cause', async () => {
  double.become({ raw: 'no' })
  for (let count = 0; count < 10; count++) expect(await problemOf(put())).toBe('malformed')
})

test('very long texts that it is late with do not keep it from others', async () => {
  double.become('hangs')
  const texts = Array.from({ length: 6 }, () => problemOf(put('x'.repeat(30_000))))
  expect(await Promise.all(texts)).toEqual(Array(6).fill('late'))
  double.become('answers')
  expect(await problemOf(put())).toBe('allow')
})

test('failures of one do not concern another, nor the same one with another address', async () => {
  double.become(500)
  for (let count = 0; count < 6; count++) await put()
  double.become('answers')
  expect(await problemOf(put('a', { name: 'other' }))).toBe('allow')
  expect(await problemOf(put('a', { url: `${double.url}&v=2` }))).toBe('allow')
  expect(await problemOf(put('a', { id: 'grd_1' }))).toBe('allow')
})

test('failures say whether the organization could bring them about', async () => {
  double.become(500)
  expect(await put()).toMatchObject({ failure: { isOfOrganization: false } })
  expect(await put('a', { id: 'grd_1' })).toMatchObject({ failure: { isOfOrganization: true } })
})

test('questions wait for a place, for no longer than their deadline', async () => {
  double.become('hangs')
  const startedAtMs = performance.now()
  const asked = Array.from({ length: 64 }, () => problemOf(put('a', { id: 'grd_1' })))
  await expect.poll(() => double.questions.length).toBe(32)
  const problems = await Promise.all(asked)
  expect(problems.slice(0, 32)).toEqual(Array(32).fill('late'))
  for (const problem of problems) expect(['late', 'overloaded', 'paused']).toContain(problem)
  // Two deadlines one after the other would be 400.
  expect(performance.now() - startedAtMs).toBeLessThan(390)
})

test('metrics tell whose they are and what went wrong, and contain no names', async () => {
  await put()
  double.become(500)
  await put('a', { id: 'grd_1', name: 'a-name' })
  const text = await metrics.registry.metrics()
  expect(text).toContain('gatehouse_guardrail_questions_total{kind="operator"} 1')
  expect(text).toContain('gatehouse_guardrail_questions_total{kind="organization"} 1')
  expect(text).toContain(
    'gatehouse_guardrail_failures_total{kind="organization",problem="status"} 1',
  )
  expect(text).toContain('gatehouse_guardrail_seconds_count{kind="operator"} 1')
  for (const name of ['grd_1', 'a-name', 'org_secret', double.url]) expect(text).not.toContain(name)
})

test('the log has failures of the operator’s guardrails, with their name and without a secret', async () => {
  double.become(500)
  await put('a text', { id: 'grd_1' })
  expect(logged).toEqual([])
  await put('a text')
  expect(logged).toEqual(['guardrail_failed Error: house, status: The guardrail answered 500.'])
})
