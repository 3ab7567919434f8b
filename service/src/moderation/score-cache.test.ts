import { expect, test } from 'vitest'

import { createMetrics } from '#platform/metrics.ts'
import { remoteGrid } from '#text/windows/window-grid.ts'

import { createScoreCache } from './score-cache.ts'
import type { Scorer, Segment } from './scorer.ts'

const scoreOf = (text: string) => ({ hate: text.includes('bad') ? 9000 : 100 })

function openCache(sizes = { entriesMax: 100, shareMax: 10 }) {
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
  const cache = createScoreCache({ now: () => new Date(), metrics: createMetrics(), sizes })
  const { signal } = new AbortController()
  const scoreFor = (organizationId: string, ...segments: Segment[]) =>
    cache.score({ scorer, identity: 'double', grid: remoteGrid() }, segments, {
      signal,
      organizationId,
    })
  return {
    asked,
    scoreFor,
    score: (...segments: Segment[]) => scoreFor('org_1', ...segments),
  }
}

const says = (text: string): Segment => ({ role: 'assistant', text })
const whole = (text: string, ...windows: string[]): Segment => ({
  ...says(text),
  windows: () => [windows.map((each) => ({ text: each, start: 0, end: 0, isLast: false }))],
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

test('what one organization has sent is asked about again for another, so that no time tells of it', async () => {
  const { asked, scoreFor } = openCache()
  await scoreFor('org_1', says('the offer is 5 million'), says('good'))
  await scoreFor('org_2', says('the offer is 5 million'))
  await scoreFor('org_2', whole('good', 'good'))
  expect(asked).toEqual([['the offer is 5 million', 'good'], ['the offer is 5 million'], ['good']])
})

test('an organization with very many texts drives out its own scores, and none of the others', async () => {
  const { asked, scoreFor } = openCache()
  await scoreFor('org_1', says('good'))
  for (let i = 0; i < 300; i++) await scoreFor('org_2', says(String(i)))
  asked.length = 0
  await scoreFor('org_1', says('good'))
  await scoreFor('org_2', says('299'))
  expect(asked).toEqual([])
})
