import { expect, test } from 'vitest'

import { type AnswerEvent, noUsage, type Usage } from './answer.ts'
import { createMeter } from './meter.ts'

const source = { event: '', data: '', bytes: Buffer.alloc(0), json: {} }
const started = (usage: Partial<Usage> = {}): AnswerEvent => ({
  ...{ type: 'started', id: '', model: '', usage: { ...noUsage, ...usage } },
})
const said = (text: string): AnswerEvent => ({ type: 'block_delta', index: 0, text })
const finished = (usage: Partial<Usage> = {}): AnswerEvent => ({
  ...{ type: 'finished', reason: 'end', stopSequence: null, usage: { ...noUsage, ...usage } },
})

function meter(events: AnswerEvent[], countText = async (text: string) => text.length) {
  const created = createMeter({ inputTokens: 50, countText })
  for (const event of events) {
    created.note({ protocol: 'messages', frames: [{ events: [event], source }] })
  }
  return created.usage()
}

test('what the upstream says counts, with its details', async () => {
  const usage = { inputTokens: 10, outputTokens: 3, cachedInputTokens: 4, reasoningTokens: 1 }
  expect(await meter([started({ inputTokens: 9 }), said('Hello'), finished(usage)])).toEqual({
    ...{ ...noUsage, ...usage, origin: 'upstream' },
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
  ['negative', { inputTokens: 10, outputTokens: -7 }],
  ['absurd', { inputTokens: 10, outputTokens: 3e9 }],
  ['fractions', { inputTokens: 10, outputTokens: 0.5 }],
  ['more cached than read', { inputTokens: 10, outputTokens: 5, cachedInputTokens: 1e8 }],
])('an upstream is not believed: %s', async (_, usage) => {
  const counted = { inputTokens: 50, outputTokens: 5, cachedInputTokens: 0 }
  expect(await meter([started(), said('Hello'), finished(usage)])).toMatchObject(counted)
})

test('an absurd input at the beginning is not believed either', async () => {
  expect(await meter([started({ inputTokens: 3e9 }), said('Hi')])).toMatchObject({
    ...{ inputTokens: 50, outputTokens: 2 },
  })
})

test('a count that fails does not keep a call from ending', async () => {
  const fail = () => Promise.reject(new Error('no thread is free'))
  expect(await meter([started(), said('123456')], fail)).toMatchObject({ outputTokens: 2 })
})
