import { afterEach, beforeEach, expect, test } from 'vitest'

import { createOriginPools, type OriginPools } from '#platform/origin-pools.ts'

import { createPostToModel } from './post-scorer.ts'
import { ScorerFailure } from './scorer.ts'
import { createScorerDouble } from './testing/scorer-double.ts'

let double: Awaited<ReturnType<typeof createScorerDouble>>
let pools: OriginPools

beforeEach(async () => {
  double = await createScorerDouble()
  pools = createOriginPools()
})
afterEach(async () => {
  await pools.close()
  await double[Symbol.asyncDispose]()
})

const placeOf = (baseUrl: string) => ({ baseUrl, model: 'm', secret: 'the-secret' })
const never = new AbortController().signal

function post(options: { deadlineMs?: number; signal?: AbortSignal; baseUrl?: string } = {}) {
  const { deadlineMs = 5000, signal = never, baseUrl = double.baseUrl } = options
  const send = createPostToModel(pools, placeOf(baseUrl), deadlineMs)
  return send('/v1/moderations', { model: 'm', input: ['a'] }, signal)
}

async function failureOf(sent: Promise<unknown>): Promise<ScorerFailure> {
  const error: unknown = await sent.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (error instanceof ScorerFailure) return error
  throw new Error('there was no ScorerFailure', { cause: error })
}

test('sends JSON with the key, whether the address ends with /v1 or not', async () => {
  expect(await post()).toMatchObject({ id: 'modr-1' })
  await post({ baseUrl: double.baseUrl.replace(/v1$/, '') })
  const expected = {
    path: '/v1/moderations',
    authorization: 'Bearer the-secret',
    body: { model: 'm', input: ['a'] },
  }
  expect(double.calls).toEqual([expected, expected])
})

test.each([
  [401, 'misconfigured'],
  [403, 'misconfigured'],
  [404, 'misconfigured'],
  [429, 'busy'],
  [400, 'rejected'],
  [413, 'rejected'],
  [500, 'error'],
  [503, 'error'],
  [302, 'error'],
  ['hangs up', 'unreachable'],
  ['stops within its answer', 'unreachable'],
  ['answers half of its JSON', 'malformed'],
  ['answers without end', 'malformed'],
] as const)('a server that does this: %s, is the problem %s', async (behaviour, problem) => {
  double.become(behaviour)
  const failure = await failureOf(post())
  expect([failure.kind, failure.isMisconfigured]).toEqual([problem, problem === 'misconfigured'])
  expect(failure.message).not.toMatch(/127\.0\.0\.1|the-secret/)
  expect(double.calls).toHaveLength(problem === 'unreachable' ? 2 : 1)
})

test('a connection that breaks once is not a failure', async () => {
  double.become('hangs up once')
  expect(await post()).toMatchObject({ id: 'modr-1' })
  expect(double.calls).toHaveLength(2)
})

test('a server that does not answer is given up at the deadline', async () => {
  double.become('hangs')
  const startedAtMs = performance.now()
  expect((await failureOf(post({ deadlineMs: 100 }))).kind).toBe('timeout')
  expect(performance.now() - startedAtMs).toBeGreaterThan(90)
  expect(double.calls).toHaveLength(1)
})

test('without a listening server there is no connection', async () => {
  await double[Symbol.asyncDispose]()
  expect((await failureOf(post())).kind).toBe('unreachable')
  double = await createScorerDouble()
})

test('a call that is given up ends at once, with the reason of the caller', async () => {
  double.become('hangs')
  const caller = new AbortController()
  const sent = post({ signal: caller.signal })
  await expect.poll(() => double.calls.length).toBe(1)
  const reason = new Error('hung up')
  caller.abort(reason)
  await expect(sent).rejects.toBe(reason)
  await expect(post({ signal: caller.signal })).rejects.toBe(reason)
  expect(double.calls).toHaveLength(1)
})

test('more open calls than a server gets are refused and do not queue', async () => {
  double.become('hangs')
  const open = Array.from({ length: 512 }, () => post({ deadlineMs: 2000 }).catch(() => undefined))
  expect((await failureOf(post())).kind).toBe('overloaded')
  await Promise.all(open)
})
