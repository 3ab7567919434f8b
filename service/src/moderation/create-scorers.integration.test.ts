import { afterEach, beforeEach, expect, test } from 'vitest'

import { createLog } from '#platform/log.ts'
import { createMetrics } from '#platform/metrics.ts'
import { createOriginPools, type OriginPools } from '#platform/origin-pools.ts'

import { chatReplyOf } from './adapters/testing/recorded.ts'
import { categories, type Category } from './categories.ts'
import { createScorers } from './create-scorers.ts'
import { readModeration } from './read-moderation.ts'
import { createScoreCache } from './score-cache.ts'
import { createScorerDouble } from './testing/scorer-double.ts'

type Double = Awaited<ReturnType<typeof createScorerDouble>>
let openai: Double
let guard: Double
let pools: OriginPools
let guardReply = 'safe'

beforeEach(async () => {
  guardReply = 'safe'
  openai = await createScorerDouble()
  guard = await createScorerDouble(() => chatReplyOf('llama-guard-plain', guardReply))
  pools = createOriginPools()
})
afterEach(async () => {
  await pools.close()
  await openai[Symbol.asyncDispose]()
  await guard[Symbol.asyncDispose]()
})

const never = { signal: new AbortController().signal, organizationId: 'org_1' }
const all: ReadonlySet<Category> = new Set(categories)
const only = (...wanted: Category[]): ReadonlySet<Category> => new Set(wanted)
const user = (text: string) => ({ role: 'user', text }) as const

function create(order: readonly ('openai' | 'guard')[] = ['openai', 'guard']) {
  let nowMs = 1_800_000_000_000
  const now = () => new Date(nowMs)
  const metrics = createMetrics()
  const lines: string[] = []
  const log = createLog('info', { write: (line) => lines.push(line) })
  const cache = createScoreCache({ now, metrics })
  const entries = {
    openai: { name: 'openai', adapter: 'openai', base_url: openai.baseUrl, model: 'omni' },
    guard: {
      name: 'guard',
      adapter: 'llama_guard',
      base_url: guard.baseUrl,
      model: 'guard',
      thresholds: { 'self-harm': 0.95, 'sexual/minors': 0.9 },
    },
  }
  const build = (snapshot = 'first') => {
    const file = { scorers: order.map((name) => ({ ...entries[name], snapshot })) }
    const options = { allowsTestDoubles: false, readSecret: () => '' }
    const settings = readModeration(JSON.stringify(file), options)
    return createScorers(settings, { pools, cache, now, log, metrics })
  }
  const countOf = async (metric: 'scorerRequests' | 'scorerFailures' | 'scoreLookups') =>
    (await metrics[metric].get()).values.map(({ value, labels }) => [
      ...Object.values(labels),
      value,
    ])
  const wait = (ms: number) => {
    nowMs += ms
  }
  return { moderation: build(), build, metrics, cache, countOf, wait, lines }
}

test('of a category that is always blocked the highest score counts, of others the first', async () => {
  guardReply = 'unsafe\nS4,S10'
  const { moderation } = create()
  const segments = [
    user('[[cat:hate=0.3]] [[cat:sexual/minors=0.1]]'),
    user('x [[cat:sexual=0.6]]'),
  ]
  const { segments: results, unscored, failed } = await moderation.score(segments, all, never)
  expect(results[0]).toMatchObject({
    scores: { hate: 3000, 'sexual/minors': 9500 },
    reached: ['sexual/minors'],
  })
  expect(results[1]?.reached).toEqual(['sexual', 'sexual/minors'])
  expect([[...unscored], failed]).toEqual([[], []])
})

test('a score counts by the threshold of the scorer that gave it', async () => {
  guardReply = 'unsafe\nS11'
  const reachedBy = async (text: string) => {
    const { moderation } = create()
    return (await moderation.score([user(text)], only('self-harm'), never)).segments[0]
  }
  expect(await reachedBy('[[cat:self-harm=0.1]]')).toMatchObject({ reached: ['self-harm'] })
  guardReply = 'safe'
  expect(await reachedBy('[[cat:self-harm=0.39]]')).toMatchObject({
    scores: { 'self-harm': 3900 },
    reached: [],
  })
  expect(await reachedBy('[[cat:self-harm=0.4]]')).toMatchObject({ reached: ['self-harm'] })
})

test('only scorers that are needed are asked', async () => {
  const { moderation } = create(['guard', 'openai'])
  await moderation.score([user('a')], only('hate'), never)
  expect([guard.calls.length, openai.calls.length]).toEqual([1, 0])
  const { unscored } = await create(['guard']).moderation.score([user('a')], all, never)
  expect([...unscored]).toEqual(['harassment'])
})

test('many texts are sent in calls of 32, and a long one in pieces that leave nothing out', async () => {
  const { moderation } = create(['openai'])
  const long = `${'a'.repeat(20_000)}[[cat:hate=0.8]]${'b'.repeat(20_000)}`
  const segments = [...Array.from({ length: 70 }, (_, index) => user(`text ${index}`)), user(long)]
  const { segments: results } = await moderation.score(segments, only('hate'), never)
  const inputs = openai.calls.map(({ body }) => body.input as string[])
  expect(inputs.map(({ length }) => length).toSorted((left, right) => left - right)).toEqual([
    12, 32, 32,
  ])
  expect(Math.max(...inputs.flat().map(({ length }) => length))).toBe(8000)
  expect(results.map(({ reached }) => reached.length).lastIndexOf(1)).toBe(70)
  expect(results.filter(({ reached }) => reached.length > 0)).toHaveLength(1)
})

test('a text of millions of characters is not scored in part', async () => {
  const { moderation, countOf } = create(['openai'])
  const texts = [user('a'.repeat(4_000_001))]
  const { failed, unscored, segments } = await moderation.score(texts, only('hate'), never)
  expect(failed.map(({ failure }) => failure.kind)).toEqual(['too_long'])
  expect([[...unscored], segments[0]?.scores]).toEqual([['hate'], {}])
  expect(openai.calls).toEqual([])
  expect(await countOf('scorerFailures')).toEqual([['openai', 'too_long', 1]])
})

test('what is known is not asked again, for the same role, text and snapshot', async () => {
  const { moderation, build, countOf, wait, cache } = create(['openai'])
  const score = (from: typeof moderation, ...segments: Parameters<typeof moderation.score>[0]) =>
    from.score(segments, only('hate'), never)
  const marked = user('[[cat:hate=0.9]]')
  await score(moderation, marked, marked)
  const again = await score(moderation, marked, user('new'))
  expect(again.segments.map(({ scores }) => scores.hate)).toEqual([9000, 0])
  expect(openai.calls.map(({ body }) => body.input)).toEqual([['[[cat:hate=0.9]]'], ['new']])
  expect(await countOf('scoreLookups')).toEqual([
    ['unknown', 3],
    ['known', 1],
  ])
  await score(build('second'), marked)
  await score(moderation, { ...marked, role: 'assistant' })
  expect(openai.calls).toHaveLength(4)
  wait(24 * 60 * 60 * 1000)
  await score(moderation, marked)
  expect(openai.calls).toHaveLength(5)
  expect(cache.size).toBe(4)
})

test('an image is read by a scorer that can, and is named where there is none', async () => {
  const image = { ...user(''), imageUrl: 'data:image/png;base64,AAAA' }
  const hasUnread = async (order: ('openai' | 'guard')[], wanted = only('sexual')) => {
    const { moderation } = create(order)
    const { segments, unscored } = await moderation.score([image], wanted, never)
    return [segments[0]?.hasUnreadImage, [...unscored]]
  }
  expect(await hasUnread(['openai'])).toEqual([false, []])
  expect(await hasUnread(['guard'])).toEqual([true, []])
  expect([openai.calls.length, guard.calls.length]).toEqual([1, 0])
  expect(await hasUnread(['openai'], only('self-harm'))).toEqual([false, []])
  // The endpoint does not look for it in images.
  expect(await hasUnread(['openai'], only('self-harm', 'sexual/minors'))).toEqual([true, []])
})

test('an image that a failed scorer would have read is a gap, one that none reads is not', async () => {
  const image = { ...user(''), imageUrl: 'data:image/png;base64,AAAA' }
  const unscoredBy = async (order: ('openai' | 'guard')[]) => {
    const { moderation } = create(order)
    const { unscored } = await moderation.score([image], all, never)
    return [...unscored]
  }
  expect(await unscoredBy(['openai', 'guard'])).toEqual([])
  openai.become(500)
  guard.become(500)
  expect(await unscoredBy(['openai'])).toEqual(['self-harm', 'sexual/minors'])
  expect(await unscoredBy(['openai', 'guard'])).toEqual(['self-harm', 'sexual/minors'])
  expect(await unscoredBy(['guard'])).toEqual([])
})

test('a scorer that fails is named, and the others count', async () => {
  openai.become(429)
  guardReply = 'unsafe\nS11'
  const { moderation, countOf } = create()
  const { segments, unscored, failed } = await moderation.score([user('a')], all, never)
  expect(segments[0]).toMatchObject({ scores: { 'self-harm': 9500 }, reached: ['self-harm'] })
  expect([...unscored]).toEqual(['harassment'])
  expect(failed.map(({ name, failure }) => [name, failure.kind])).toEqual([['openai', 'busy']])
  expect(await countOf('scorerFailures')).toEqual([['openai', 'busy', 1]])
  expect(await countOf('scorerRequests')).toEqual([
    ['openai', 1],
    ['guard', 1],
  ])
})

const problemsOf = async (moderation: ReturnType<typeof createScorers>, text = 'a') => {
  const { failed } = await moderation.score([user(text)], only('hate'), never)
  return failed.map(({ failure: { kind, isMisconfigured } }) => [kind, isMisconfigured])
}

test('a scorer that has failed five times is left alone for a while, and why is not forgotten', async () => {
  openai.become(401)
  const { moderation, wait, lines } = create(['openai'])
  for (let time = 0; time < 5; time++) {
    expect(await problemsOf(moderation)).toEqual([['misconfigured', true]])
  }
  expect(moderation.pausing()).toEqual(['openai'])
  expect(await problemsOf(moderation)).toEqual([['paused', true]])
  expect(openai.calls).toHaveLength(5)
  expect(lines).toHaveLength(1)
  expect(lines[0]).toContain('openai, misconfigured: The model answered 401.')
  openai.become('answers')
  wait(5001)
  expect(await problemsOf(moderation)).toEqual([])
  expect(moderation.pausing()).toEqual([])
})

test.each(['answers for other texts', 'answers half of its JSON', 400] as const)(
  'texts that lead to this: %s, do not keep the scorer from others',
  async (behaviour) => {
    openai.become(behaviour)
    const { moderation } = create(['openai'])
    for (let time = 0; time < 6; time++) await problemsOf(moderation)
    expect(openai.calls).toHaveLength(6)
    openai.become('answers')
    expect(await problemsOf(moderation)).toEqual([])
  },
)

test('images that the scorer loads from elsewhere do not keep it from others', async () => {
  openai.become(500)
  const { moderation } = create(['openai'])
  const segments = [{ ...user(''), imageUrl: 'https://slow.example.com/1.png' }]
  for (let time = 0; time < 6; time++) {
    const { failed } = await moderation.score(segments, only('sexual'), never)
    expect(failed.map(({ failure }) => failure.isOutage)).toEqual([false])
  }
  expect([openai.calls.length, moderation.pausing()]).toEqual([6, []])
  for (let time = 0; time < 5; time++) await problemsOf(moderation)
  expect(moderation.pausing()).toEqual(['openai'])
  // One that does not load them has failed by itself.
  guard.become(500)
  const blind = create(['guard']).moderation
  const mixed = [user('a'), ...segments]
  for (let time = 0; time < 5; time++) await blind.score(mixed, only('hate'), never)
  expect(blind.pausing()).toEqual(['guard'])
})

const textsOf = (count: number) => Array.from({ length: count }, (_, index) => user(`${index}`))

/** Too long to be scored together. */
const longTextsOf = (count: number) =>
  textsOf(count).map(({ text }) => user(`${text} ${'-'.repeat(500)}`))

test('texts that need more than 1,024 calls do not pass, and need fewer the next time', async () => {
  const { moderation } = create(['guard'])
  const texts = longTextsOf(1030)
  const { failed, unscored } = await moderation.score(texts, only('hate'), never)
  expect(failed.map(({ failure }) => failure.kind)).toEqual(['too_long'])
  expect([[...unscored], guard.calls.length]).toEqual([['hate'], 1024])
  expect((await moderation.score(texts, only('hate'), never)).unscored.size).toBe(0)
  expect(guard.calls).toHaveLength(1030)
})

test('8,000 short texts are one call, or a few where a call takes one text', async () => {
  const { moderation } = create(['openai', 'guard'])
  const found = await moderation.score(textsOf(8000), only('self-harm', 'sexual/minors'), never)
  expect([found.failed, found.unscored.size]).toEqual([[], 0])
  expect(openai.calls.length).toBeLessThanOrEqual(1)
  expect(guard.calls.length).toBeLessThanOrEqual(32)
})

test('what was scored before a failure is known', async () => {
  const { moderation, cache } = create(['openai'])
  const texts = [...textsOf(32), { ...user(''), imageUrl: 'https://images.example.com/1.png' }]
  openai.become('fails at images')
  const { failed } = await moderation.score(texts, only('self-harm'), never)
  expect(failed).toHaveLength(1)
  await expect.poll(() => cache.size).toBe(32)
  expect((await moderation.score(textsOf(32), only('self-harm'), never)).failed).toEqual([])
  expect(openai.calls).toHaveLength(2)
})

test('a caller that keeps the scorer busy with many texts does not switch it off for others', async () => {
  guard.become(429)
  const { moderation } = create(['guard'])
  for (let time = 0; time < 6; time++) {
    const { failed } = await moderation.score(textsOf(17), only('hate'), never)
    expect(failed.map(({ failure }) => [failure.kind, failure.isOutage])).toEqual([['busy', false]])
  }
  expect(moderation.pausing()).toEqual([])
  for (let time = 0; time < 5; time++) await moderation.score(textsOf(16), only('hate'), never)
  expect(moderation.pausing()).toEqual(['guard'])
})

test('at most 128 calls to a scorer are open, however many requests need one', async () => {
  guard.become('hangs')
  const { moderation } = create(['guard'])
  const caller = new AbortController()
  const call = { ...never, signal: caller.signal }
  const requests = Array.from({ length: 12 }, (_, number) =>
    moderation.score(
      textsOf(16).map(({ text }) => user(`${number} ${text}`)),
      only('hate'),
      call,
    ),
  )
  const ends = Promise.allSettled(requests)
  await expect.poll(() => guard.calls.length).toBe(128)
  await new Promise((resolve) => setTimeout(resolve, 100))
  expect(guard.calls).toHaveLength(128)
  caller.abort(new Error('hung up'))
  expect((await ends).every(({ status }) => status === 'rejected')).toBe(true)
})

test('a call that is given up is no failure of the scorer', async () => {
  openai.become('hangs')
  const { moderation, countOf } = create(['openai'])
  const caller = new AbortController()
  const scored = moderation.score([user('a')], only('hate'), { ...never, signal: caller.signal })
  await expect.poll(() => openai.calls.length).toBe(1)
  caller.abort(new Error('hung up'))
  await expect(scored).rejects.toThrow('hung up')
  expect(await countOf('scorerFailures')).toEqual([])
})
