import { describe, expect, test } from 'vitest'

import { type CounterKind, createUpstreamCounter, type Post } from './upstream-counter.ts'

const forever = new AbortController().signal
const request = (words: string) => ({ model: 'm', messages: [{ role: 'user', content: words }] })

function createCounter(post: Post, kind: CounterKind = 'anthropic', deadlineMs = 2000) {
  const clock = { ms: 1_000_000 }
  const now = () => new Date(clock.ms)
  return { clock, ...createUpstreamCounter({ kind, post, now, deadlineMs }) }
}

type Call = { path: string; json: Record<string, unknown> }

function answering(...answers: { status?: number; json: unknown }[]) {
  const calls: Call[] = []
  const post: Post = async (path, json) => {
    calls.push({ path, json })
    const { status = 200, json: body } = answers[Math.min(calls.length, answers.length) - 1]!
    return { status, json: body }
  }
  return { calls, post }
}

describe('each kind of upstream is asked in its own way', () => {
  test('anthropic', async () => {
    const { calls, post } = answering({ json: { input_tokens: 17 } })
    expect(await createCounter(post).ask(request('a'), forever)).toBe(17)
    expect(calls).toEqual([{ path: '/v1/messages/count_tokens', json: request('a') }])
  })

  test('vllm', async () => {
    const { calls, post } = answering({ json: { count: 18, tokens: [] } })
    const asked = { ...request('a'), tools: [{}], max_tokens: 5 }
    expect(await createCounter(post, 'vllm').ask(asked, forever)).toBe(18)
    expect(calls).toEqual([{ path: '/tokenize', json: { ...request('a'), tools: [{}] } }])
  })

  test('llama_cpp', async () => {
    const { calls, post } = answering({ json: { prompt: '<u>a' } }, { json: { tokens: [5, 6, 7] } })
    expect(await createCounter(post, 'llama_cpp').ask(request('a'), forever)).toBe(3)
    expect(calls).toEqual([
      { path: '/apply-template', json: { messages: request('a').messages } },
      { path: '/tokenize', json: { content: '<u>a', add_special: true, parse_special: true } },
    ])
  })
})

describe('no answer that makes no sense is believed', () => {
  const nonsense = [-1, 1.5, '7', null, NaN, 1e12, undefined, [7], {}]
  test.each(nonsense.map((value) => [value]))('%j', async (value) => {
    const anthropic = answering({ json: { input_tokens: value } })
    expect(await createCounter(anthropic.post).ask(request('a'), forever)).toBeUndefined()
    const vllm = answering({ json: { count: value } })
    expect(await createCounter(vllm.post, 'vllm').ask(request('a'), forever)).toBeUndefined()
    const llama = answering({ json: { prompt: 'a' } }, { json: { tokens: { length: value } } })
    expect(await createCounter(llama.post, 'llama_cpp').ask(request('a'), forever)).toBeUndefined()
  })

  test.each([null, 'text', 5, undefined])('a body that is no object: %j', async (json) => {
    const { post } = answering({ json })
    expect(await createCounter(post).ask(request('a'), forever)).toBeUndefined()
  })

  test.each([400, 404, 429, 500, 503, 302])('status %i', async (status) => {
    const { post } = answering({ status, json: { input_tokens: 5 } })
    expect(await createCounter(post).ask(request('a'), forever)).toBeUndefined()
  })

  test('a call that fails', async () => {
    const failing = createCounter(() => Promise.reject(new Error('ECONNREFUSED')))
    expect(await failing.ask(request('a'), forever)).toBeUndefined()
  })
})

test('an upstream that does not answer is given up after its time, and told so', async () => {
  const gone = Promise.withResolvers<void>()
  const slow: Post = (_path, _json, signal) => {
    signal.addEventListener('abort', () => gone.resolve())
    return new Promise(() => {})
  }
  const begin = performance.now()
  expect(await createCounter(slow, 'anthropic', 200).ask(request('a'), forever)).toBeUndefined()
  expect(performance.now() - begin).toBeLessThan(1500)
  await gone.promise
})

test('both calls of llama_cpp together have one deadline', async () => {
  const wait = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
  const slow: Post = async (path) => {
    await wait(200)
    return { status: 200, json: path === '/tokenize' ? { tokens: [1] } : { prompt: 'a' } }
  }
  expect(await createCounter(slow, 'llama_cpp', 300).ask(request('a'), forever)).toBeUndefined()
  expect(await createCounter(slow, 'llama_cpp', 5000).ask(request('a'), forever)).toBe(1)
})

test('a caller who leaves is not answered, and is not held against the upstream', async () => {
  let isWell = false
  const post: Post = (_path, _json, signal) =>
    isWell
      ? Promise.resolve({ status: 200, json: { input_tokens: 4 } })
      : new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
  const counter = createCounter(post)
  for (let index = 0; index < 10; index++) {
    const leaving = new AbortController()
    const asking = counter.ask(request(String(index)), leaving.signal)
    leaving.abort(new Error('Left.'))
    await expect(asking).rejects.toThrow('Left.')
  }
  isWell = true
  expect(await counter.ask(request('a'), forever)).toBe(4)
})

test('an answer is remembered for five minutes, for the same body only', async () => {
  const { calls, post } = answering({ json: { input_tokens: 17 } })
  const counter = createCounter(post)
  await counter.ask(request('a'), forever)
  await counter.ask(request('a'), forever)
  expect(calls).toHaveLength(1)
  await counter.ask(request('b'), forever)
  expect(calls).toHaveLength(2)
  counter.clock.ms += 5 * 60 * 1000
  await counter.ask(request('a'), forever)
  expect(calls).toHaveLength(3)
})

test('only so many answers are remembered', async () => {
  const { calls, post } = answering({ json: { input_tokens: 17 } })
  const counter = createCounter(post)
  for (let index = 0; index <= 1000; index++) await counter.ask(request(String(index)), forever)
  await counter.ask(request('1000'), forever)
  expect(calls).toHaveLength(1001)
  await counter.ask(request('0'), forever)
  expect(calls).toHaveLength(1002)
})

describe('an upstream that fails five times in a row', () => {
  test('is left alone for 30 seconds; then one call finds out whether it is back', async () => {
    const answer = { status: 500, json: { input_tokens: 9 } }
    let calls = 0
    const counter = createCounter(async () => {
      calls++
      return answer
    })
    for (let index = 0; index < 20; index++) await counter.ask(request(String(index)), forever)
    expect(calls).toBe(5)

    counter.clock.ms += 30_000
    await Promise.all([counter.ask(request('x'), forever), counter.ask(request('y'), forever)])
    expect(calls).toBe(6)

    counter.clock.ms += 30_000
    answer.status = 200
    expect(await counter.ask(request('x'), forever)).toBe(9)
    expect(await counter.ask(request('y'), forever)).toBe(9)
    expect(calls).toBe(8)
  })

  test('with nonsense is left alone too', async () => {
    const { calls, post } = answering({ json: { input_tokens: -1 } })
    const counter = createCounter(post)
    for (let index = 0; index < 20; index++) await counter.ask(request(String(index)), forever)
    expect(calls).toHaveLength(5)
  })

  test('because of what callers send is asked on', async () => {
    const { calls, post } = answering({ status: 400, json: {} })
    const counter = createCounter(post)
    for (let index = 0; index < 20; index++) await counter.ask(request(String(index)), forever)
    expect(calls).toHaveLength(20)
  })
})
