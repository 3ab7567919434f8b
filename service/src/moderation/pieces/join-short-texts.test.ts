import { expect, test } from 'vitest'

import type { CategoryScores } from '#moderation/categories.ts'
import { type Scorer, ScorerFailure, type Segment } from '#moderation/scorer.ts'

import { joinShortTexts } from './join-short-texts.ts'

const scoreOf = (text: string): CategoryScores => ({ hate: text.includes('bad') ? 9000 : 100 })

/** A scorer that asks others, one question for each text. */
function open(fails: (text: string) => boolean = () => false, groupMax = 1) {
  const rounds: Segment[][] = []
  const begun: number[] = []
  const added: number[] = []
  const scorer: Scorer = {
    name: 'double',
    covers: new Set(['hate']),
    asksOthers: true,
    async score(segments, { questions, onScored }) {
      rounds.push([...segments])
      await questions?.begin(segments.length)
      return segments.map((segment, index) => {
        if (fails(segment.text)) throw new ScorerFailure('rejected', 'It was not taken.')
        onScored?.(index, scoreOf(segment.text))
        return scoreOf(segment.text)
      })
    },
  }
  const known = new Map<number, CategoryScores>()
  const score = (segments: readonly Segment[]) =>
    joinShortTexts(scorer, groupMax).score(segments, {
      signal: new AbortController().signal,
      organizationId: 'org_1',
      questions: {
        begin: async (number) => void begun.push(number),
        add: (number) => void added.push(number),
      },
      onScored: (index, scores) => void known.set(index, scores),
    })
  return { score, rounds, begun, added, known }
}

const says = (text: string, role: Segment['role'] = 'user'): Segment => ({ role, text })
const many = (count: number, text = (i: number) => `w${i}`) =>
  Array.from({ length: count }, (_, i) => says(text(i)))

test('a few texts are scored alone', async () => {
  const { score, rounds } = open()
  await score(many(32))
  expect(rounds).toEqual([many(32)])
})

test('texts that are a few questions are scored alone', async () => {
  const { score, rounds } = open(undefined, 32)
  await score(many(256))
  expect(rounds).toEqual([many(256)])
  await score(many(257))
  expect(rounds[1]?.length).toBe(1)
})

test('very many short texts are a few questions, and each has its scores', async () => {
  const { score, begun, added, known } = open()
  const results = await score(many(8000))
  expect(results).toEqual(many(8000).map(() => ({ hate: 100 })))
  // Alone, a text may have another score than among others.
  expect(known.size).toBe(0)
  expect(begun).toEqual([28])
  expect(added).toEqual([])
})

test('every character is in some question', async () => {
  const { score, rounds } = open()
  const texts = many(500, (i) => `text ${i} `.repeat(i % 120))
  await score(texts)
  const asked = new Set(rounds.flat().flatMap(({ text }) => text.split('\n\n')))
  for (const { text } of texts) expect(asked).toContain(text)
  for (const { text } of rounds.flat()) expect(text.length).toBeLessThanOrEqual(2000)
})

test('where something is found, each text of it is scored alone: it is known where it is', async () => {
  const { score, rounds, added, known } = open()
  const texts = many(8000, (i) => (i === 4321 ? 'bad' : `w${i}`))
  const results = await score(texts)
  expect(results.flatMap(({ hate }, i) => (hate === 9000 ? i : []))).toEqual([4321])
  expect([...known].flatMap(([i, { hate }]) => (hate === 9000 ? i : []))).toEqual([4321])
  expect(known.size).toBe(rounds[1]?.length)
  expect(rounds).toHaveLength(2)
  expect(rounds[1]?.length).toBeLessThan(400)
  expect(added).toEqual([rounds[1]?.length])
})

test('long texts, images and texts of another role are not joined with others', async () => {
  const { score, rounds } = open()
  const image = { ...says('w'), imageUrl: 'data:image/png;base64,aa' }
  const answers = Array.from({ length: 3 }, (_, i) => says(`a${i}`, 'assistant'))
  const long = says('x'.repeat(501))
  await score([...many(40), image, says(''), long, ...answers])
  const user = {
    role: 'user',
    text: many(40)
      .map(({ text }) => text)
      .join('\n\n'),
  }
  const assistant = { role: 'assistant', text: 'a0\n\na1\n\na2' }
  expect(rounds).toEqual([[user, image, says(''), long, assistant]])
})

test('what cannot be scored together has no scores', async () => {
  const { score, known } = open((text) => text.includes('w39'))
  await expect(score(many(40))).rejects.toThrow(ScorerFailure)
  expect(known.size).toBe(0)
})
