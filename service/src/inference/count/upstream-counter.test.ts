import { waitingRatio } from '@gatehouse/tools/testing/duration-ratio'
import { describe, expect, test } from 'vitest'

import type { PostToUpstream } from '#inference/upstreams/post-upstream.ts'

import { type CounterKind, createUpstreamCounter } from './upstream-counter.ts'

const noAbort = new AbortController().signal
const request = (words: string) => ({ model: 'm', messages: [{ role: 'user', content: words }] })

function createCounter(post: PostToUpstream, kind: CounterKind = 'anthropic', deadlineMs = 2000) {
  const clock = { ms: 1_000_000 }
  const now = () => new Date(clock.ms)
  return { clock, ...createUpstreamCounter({ kind, post, now, deadlineMs }) }
}

type Call = { path: string; json: Record<string, unknown> }

function answering(...answers: { status?: number; json: unknown }[]) {
  const calls: Call[] = []
  const post: PostToUpstream = async (path, json) => {
    calls.push({ path, json })
    const { status = 200, json: body } = answers[Math.min(calls.length, answers.length) - 1]!
    return { status, json: body }
  }
  return { calls, post }
}

describe('each kind of counter is called through its own API', () => {
  test('anthropic', async () => {
    const { calls, post } = answering({ json: { input_tokens: 17 } })
    expect(await createCounter(post).count(request('a'), noAbort)).toBe(17)
    expect(calls).toEqual([{ path: '/v1/messages/count_tokens', json: request('a') }])
  })

  test('vllm', async () => {
    const { calls, post } = answering({ json: { count: 18, tokens: [] } })
    const body = { ...request('a'), tools: [{}], max_tokens: 5 }
    expect(await createCounter(post, 'vllm').count(body, noAbort)).toBe(18)
    expect(calls).toEqual([{ path: '/tokenize', json: { ...request('a'), tools: [{}] } }])
  })

  test('llama_cpp', async () => {
    const { calls, post } = answering({ json: { prompt: '<u>a' } }, { json: { tokens: [5, 6, 7] } })
    expect(await createCounter(post, 'llama_cpp').count(request('a'), noAbort)).toBe(3)
    expect(calls).toEqual([
      { path: '/apply-template', json: { messages: request('a').messages } },
      { path: '/tokenize', json: { content: '<u>a', add_special: true, parse_special: true } },
    ])
  })
})

describe('an invalid answer gives no count', () => {
  const invalidCounts = [-1, 1.5, '7', null, NaN, 1e12, undefined, [7], {}]
  test.each(invalidCounts.map((value) => [value]))('%j', async (value) => {
    const anthropic = answering({ json: { input_tokens: value } })
    expect(await createCounter(anthropic.post).count(request('a'), noAbort)).toBeUndefined()
    const vllm = answering({ json: { count: value } })
    expect(await createCounter(vllm.post, 'vllm').count(request('a'), noAbort)).toBeUndefined()
    const llama = answering({ json: { prompt: 'a' } }, { json: { tokens: { length: value } } })
    expect(
      await createCounter(llama.post, 'llama_cpp').count(request('a'), noAbort),
    ).toBeUndefined()
  })

  test.each([null, 'text', 5, undefined])('a body that is not an object: %j', async (json) => {
    const { post } = answering({ json })
    expect(await createCounter(post).count(request('a'), noAbort)).toBeUndefined()
  })

  test.each([400, 404, 429, 500, 503, 302])('status %i', async (status) => {
    const { post } = answering({ status, json: { input_tokens: 5 } })
    expect(await createCounter(post).count(request('a'), noAbort)).toBeUndefined()
  })

  test('a call that fails', async () => {
    const failing = createCounter(() => Promise.reject(new Error('ECONNREFUSED')))
    expect(await failing.count(request('a'), noAbort)).toBeUndefined()
  })
})

test('a call that gets no answer is aborted at the deadline', async () => {
  const aborted = Promise.withResolvers<void>()
  const slow: PostToUpstream = (_path, _json, signal) => {
    signal.addEventListener('abort', () => aborted.resolve())
    return new Promise(() => {})
  }
  const ratio = await waitingRatio('no answer', 200, async () => {
    expect(await createCounter(slow, 'anthropic', 200).count(request('a'), noAbort)).toBeUndefined()
  })
  expect(ratio).toBeLessThan(5)
  await aborted.promise
})

test('both calls of llama_cpp share one deadline', async () => {
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  const slow: PostToUpstream = async (path) => {
    await wait(200)
    return { status: 200, json: path === '/tokenize' ? { tokens: [1] } : { prompt: 'a' } }
  }
  expect(await createCounter(slow, 'llama_cpp', 300).count(request('a'), noAbort)).toBeUndefined()
  expect(await createCounter(slow, 'llama_cpp', 5000).count(request('a'), noAbort)).toBe(1)
})

test('an aborted call is rejected, and does not count as a failure of the upstream', async () => {
  let isHealthy = false
  const post: PostToUpstream = (_path, _json, signal) =>
    isHealthy
      ? Promise.resolve({ status: 200, json: { input_tokens: 4 } })
      : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const counter = createCounter(post)
  for (let index = 0; index < 10; index++) {
    const caller = new AbortController()
    const counting = counter.count(request(String(index)), caller.signal)
    caller.abort(new Error('Aborted.'))
    await expect(counting).rejects.toThrow('Aborted.')
  }
  isHealthy = true
  expect(await counter.count(request('a'), noAbort)).toBe(4)
})

test('an answer is cached for five minutes, for the same body only', async () => {
  const { calls, post } = answering({ json: { input_tokens: 17 } })
  const counter = createCounter(post)
  await counter.count(request('a'), noAbort)
  await counter.count(request('a'), noAbort)
  expect(calls).toHaveLength(1)
  await counter.count(request('b'), noAbort)
  expect(calls).toHaveLength(2)
  counter.clock.ms += 5 * 60 * 1000
  await counter.count(request('a'), noAbort)
  expect(calls).toHaveLength(3)
})

test('at most 1,000 answers are cached', async () => {
  const { calls, post } = answering({ json: { input_tokens: 17 } })
  const counter = createCounter(post)
  for (let index = 0; index <= 1000; index++) await counter.count(request(String(index)), noAbort)
  await counter.count(request('1000'), noAbort)
  expect(calls).toHaveLength(1001)
  await counter.count(request('0'), noAbort)
  expect(calls).toHaveLength(1002)
})

describe('an upstream that fails five times in a row', () => {
  test('is not called for 30 seconds; then one call tests whether it has recovered', async () => {
    const answer = { status: 500, json: { input_tokens: 9 } }
    let calls = 0
    const counter = createCounter(async () => {
      calls++
      return answer
    })
    for (let index = 0; index < 20; index++) await counter.count(request(String(index)), noAbort)
    expect(calls).toBe(5)

    counter.clock.ms += 30_000
    await Promise.all([counter.count(request('x'), noAbort), counter.count(request('y'), noAbort)])
    expect(calls).toBe(6)

    counter.clock.ms += 30_000
    answer.status = 200
    expect(await counter.count(request('x'), noAbort)).toBe(9)
    expect(await counter.count(request('y'), noAbort)).toBe(9)
    expect(calls).toBe(8)
  })

  test('with invalid answers is not called either', async () => {
    const { calls, post } = answering({ json: { input_tokens: -1 } })
    const counter = createCounter(post)
    for (let index = 0; index < 20; index++) await counter.count(request(String(index)), noAbort)
    expect(calls).toHaveLength(5)
  })

  test('because of invalid requests is still called', async () => {
    const { calls, post } = answering({ status: 400, json: {} })
    const counter = createCounter(post)
    for (let index = 0; index < 20; index++) await counter.count(request(String(index)), noAbort)
    expect(calls).toHaveLength(20)
  })
})
