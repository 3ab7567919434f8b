import { expect, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'

import { createScoreCache } from './score-cache.ts'
import type { Scorer, Segment } from './scorer.ts'

const scoreOf = (text: string) => ({ hate: text.includes('bad') ? 9000 : 100 })

function openCache() {
  const asked: string[][] = []
  const scorer: Scorer = {
    name: 'double',
    covers: new Set(['hate']),
    async score(segments, { onScored }) {
      asked.push(segments.map(({ text }) => text))
      return segments.map(({ text }, index) => {
        onScored?.(index, scoreOf(text))
        return scoreOf(text)
      })
    },
  }
  const cache = createScoreCache({ now: () => new Date(), metrics: createMetrics() })
  const call = { signal: new AbortController().signal, organizationId: 'org_1' }
  return {
    asked,
    score: (...segments: Segment[]) => cache.score(scorer, 'double', segments, call),
  }
}

const says = (text: string): Segment => ({ role: 'assistant', text })
const whole = (text: string, ...windows: string[]): Segment => ({
  ...says(text),
  windows: () => windows,
})

test('a text whose windows are all known is not asked about, and has their highest scores', async () => {
  const { asked, score } = openCache()
  await score(says('good'), says('bad'))
  expect(await score(whole('good bad', 'good', 'bad'))).toEqual([{ hate: 9000 }])
  expect(await score(says('good bad'))).toEqual([{ hate: 9000 }])
  expect(asked).toEqual([['good', 'bad']])
})

test('a text with an unknown window is asked about as a whole, together with others', async () => {
  const { asked, score } = openCache()
  await score(says('good'))
  await score(whole('good bad', 'good', 'bad'), whole('fine', 'fine'))
  expect(asked).toEqual([['good'], ['good bad', 'fine']])
})

test('a text without windows is asked about', async () => {
  const { asked, score } = openCache()
  await score(whole('\u200b'))
  expect(asked).toEqual([['\u200b']])
})
