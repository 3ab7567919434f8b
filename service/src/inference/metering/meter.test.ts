import { expect, test } from 'vitest'

import { type AnswerEvent, noUsage, type Usage } from '#formats/answer.ts'

import { createMeter } from './meter.ts'

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
const started = (usage: Partial<Usage> = {}): AnswerEvent => ({
  type: 'started',
  id: '',
  model: '',
  usage: { ...noUsage, ...usage },
})
const said = (text: string): AnswerEvent => ({ type: 'block_delta', index: 0, text })
const finished = (usage: Partial<Usage> = {}): AnswerEvent => ({
  type: 'finished',
  reason: 'end',
  stopSequence: null,
  usage: { ...noUsage, ...usage },
})

const options = {
  inputTokens: 50,
  maxOutputTokens: 1000,
  countText: async (text: string) => text.length,
  hiddenTokensPerSecond: () => 0,
  isHungUp: () => true,
  now: () => new Date(0),
}

function meter(events: AnswerEvent[], countText = options.countText) {
  const created = createMeter({ ...options, countText })
  for (const event of events) {
    created.observe({ format: 'messages', frames: [{ events: [event], source }] })
  }
  return created.usage()
}

test('what the upstream says counts, with its details', async () => {
  const usage = { inputTokens: 10, outputTokens: 3, cachedInputTokens: 4, reasoningTokens: 1 }
  expect(await meter([started({ inputTokens: 9 }), said('Hello'), finished(usage)])).toEqual({
    ...noUsage,
    ...usage,
    origin: 'upstream',
  })
})

test('an answer without usage is counted here: what was sent and what was written', async () => {
  const counted = { inputTokens: 50, outputTokens: 5, origin: 'local-estimate' }
  expect(await meter([started(), said('Hello'), finished()])).toMatchObject(counted)
})

test('a cut answer is counted up to there, with the input that is known', async () => {
  const cut = [started({ inputTokens: 12, outputTokens: 1 }), said('Hel'), said('lo')]
  expect(await meter(cut)).toMatchObject({ inputTokens: 12, outputTokens: 5 })
})

test('nothing is used before anything has come', async () => {
  expect(await meter([])).toMatchObject({ inputTokens: 0, outputTokens: 0 })
})

test.each([
  ['negative', -7],
  ['absurd', 3e9],
  ['a fraction', 0.5],
])('an output is not believed that is %s; the input is', async (_, outputTokens) => {
  const answer = [started(), said('Hello'), finished({ inputTokens: 10, outputTokens })]
  const counted = { inputTokens: 10, outputTokens: 5, origin: 'local-estimate' }
  expect(await meter(answer)).toMatchObject(counted)
})

test('an input is not believed with more cached than read; the output is', async () => {
  const usage = { inputTokens: 10, outputTokens: 7, cachedInputTokens: 1e8 }
  expect(await meter([started(), said('Hello'), finished(usage)])).toMatchObject({
    inputTokens: 50,
    outputTokens: 7,
    cachedInputTokens: 0,
    origin: 'local-estimate',
  })
})

test.each([{ outputTokens: 0 }, { outputTokens: -5 }, { outputTokens: 1e15 }])(
  'what is said at the start about the output is never its result: $outputTokens at the end',
  async (usage) => {
    const start = started({ inputTokens: 9, outputTokens: 1 })
    expect(
      await meter([start, said('Hello'), finished({ inputTokens: 9, ...usage })]),
    ).toMatchObject({
      inputTokens: 9,
      outputTokens: 5,
      origin: 'local-estimate',
    })
  },
)

test('what an upstream said and was not believed is kept as it was said', async () => {
  const reportedUsage = { output_tokens: -3, input_tokens: Infinity, note: 'x', 'a\0b': 1 }
  const created = createMeter(options)
  const frames = [{ events: [said('Hello'), finished()], source, reportedUsage }]
  created.observe({ format: 'messages', frames })
  expect((await created.usage()).said).toEqual({ output_tokens: -3, input_tokens: 'Infinity' })
})

test('an absurd input at the beginning is not believed either', async () => {
  expect(await meter([started({ inputTokens: 3e9 }), said('Hi')])).toMatchObject({
    inputTokens: 50,
    outputTokens: 2,
  })
})

test('a count that fails does not keep a call from ending', async () => {
  const fail = () => Promise.reject(new Error('no thread is free'))
  expect(await meter([started(), said('123456')], fail)).toMatchObject({ outputTokens: 2 })
})

/** An answer whose events come at these times after the request, and which ends at the last of them. */
async function meterInTime(
  timeline: readonly (readonly [ms: number, event?: AnswerEvent | 'image'])[],
  more: Partial<typeof options> = {},
) {
  let nowMs = 0
  const now = () => new Date(nowMs)
  const created = createMeter({ ...options, hiddenTokensPerSecond: () => 100, now, ...more })
  created.noteSent()
  for (const [ms, event] of timeline) {
    nowMs = ms
    if (!event) continue
    const frame =
      event === 'image' ? { events: [], source, hasMedia: true } : { events: [event], source }
    created.observe({ format: 'messages', frames: [frame] })
  }
  return created.usage()
}
const thinking: AnswerEvent = { type: 'block_started', index: 0, block: { type: 'reasoning' } }

test('a cut answer is charged for the time in which it showed nothing', async () => {
  const cut = [
    [0, started({ inputTokens: 12 })],
    [2000, said('Hel')],
    [3000, said('lo')],
  ] as const
  const charged = { inputTokens: 12, origin: 'time-estimate' }
  // Two seconds before the first word, and one and a half after the last.
  expect(await meterInTime([...cut, [4500]])).toMatchObject({ ...charged, outputTokens: 355 })
  expect(await meterInTime([[0, started({ inputTokens: 12 })], [4000]])).toMatchObject({
    ...charged,
    outputTokens: 400,
  })
  expect(await meterInTime([...cut, [60_000]])).toMatchObject({ ...charged, outputTokens: 1000 })
})

test('a summary of the reasoning does not stand for it, but what it shows is not charged twice', async () => {
  const shown = [[0, started()], [2000, thinking], [3000, said('Hm.')], [9000]] as const
  expect(await meterInTime(shown)).toMatchObject({ outputTokens: 900, origin: 'time-estimate' })
  const long = [[0, started()], [1, thinking], [2, said('x'.repeat(500))], [1000]] as const
  expect(await meterInTime(long)).toMatchObject({ outputTokens: 500, origin: 'local-estimate' })
})

test('an answer that is complete, or that its caller waited for, is not charged by time', async () => {
  const whole = [
    [0, started()],
    [2000, said('Hello')],
    [9000, finished({ inputTokens: 9 })],
  ] as const
  expect(await meterInTime(whole)).toMatchObject({ outputTokens: 5, origin: 'local-estimate' })
  const broken = [[0, started()], [2000, said('Hello')], [60_000]] as const
  expect(await meterInTime(broken, { isHungUp: () => false })).toMatchObject({
    outputTokens: 5,
    origin: 'local-estimate',
  })
})

test('a cut answer with audio or an image is charged its output limit', async () => {
  const cut = [[0, started({ inputTokens: 12 })], [1, 'image'], [2]] as const
  const charged = { inputTokens: 12, outputTokens: 1000, origin: 'time-estimate' }
  expect(await meterInTime(cut)).toMatchObject(charged)
})

test('a plain answer that was given up unseen is charged for its input and all of its time', async () => {
  let nowMs = 0
  const create = () =>
    createMeter({
      ...options,
      hiddenTokensPerSecond: () => 100,
      now: () => new Date(nowMs),
    })
  const unseen = create()
  unseen.noteSent()
  const waitedFor = create()
  nowMs = 3000
  unseen.noteUnseen()
  expect([unseen.hasBegun(), unseen.hasWritten()]).toEqual([true, false])
  expect(await unseen.usage()).toMatchObject({
    inputTokens: 50,
    outputTokens: 300,
    origin: 'time-estimate',
  })
  expect(await waitedFor.usage()).toMatchObject({ inputTokens: 0, outputTokens: 0 })
})
