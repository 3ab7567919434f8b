import { expect, test } from 'vitest'

import { createLocalScorer } from '#moderation/local/local-scorer.ts'
import { decodeModel, encodeModel } from '#moderation/local/model.ts'

import { fitWeights } from './fit.ts'
import { createRandom } from './random.ts'
import { type Labels, noCategory, toRow } from './training-row.ts'

// A made-up language: the words of a category are known only from these rows.

const subjects = ['lorn', 'mave', 'tisk', 'wend', 'yarl']
const words = { illicit: ['grobble', 'frant'], hate: ['zintle', 'quorb'] }

function makeRows() {
  const random = createRandom(1)
  const pick = (list: readonly string[]) => list[Math.floor(random() * list.length)] ?? ''
  const rowOf = (marks: readonly string[], labels: Labels) =>
    toRow([pick(subjects), pick(marks), pick(subjects)].join(' '), labels)
  return Array.from({ length: 100 }, () => [
    rowOf(words.illicit, { ...noCategory, illicit: 1 }),
    rowOf(words.hate, { hate: 1 }),
    rowOf(subjects, noCategory),
  ]).flat()
}

const train = () => encodeModel({ ...fitWeights(makeRows()), terms: new Set([7]) })

test('the same rows give the same bytes, and other rows do not', () => {
  const bytes = train()
  expect(train().equals(bytes)).toBe(true)
  const fewer = encodeModel({ ...fitWeights(makeRows().slice(3)), terms: new Set([7]) })
  expect(fewer.equals(bytes)).toBe(false)
})

test('what was trained is recognised in the bytes that are shipped, and unknown labels teach nothing', () => {
  const { scoreText } = createLocalScorer(decodeModel(train()))
  expect(scoreText('lorn frant wend').illicit).toBeGreaterThan(8_000)
  expect(scoreText('mave quorb wend').hate).toBeGreaterThan(8_000)
  expect(scoreText('mave tisk wend').illicit).toBeLessThan(2_000)
  expect(scoreText('mave tisk wend').hate).toBeLessThan(2_000)
  // No row has a positive label for self-harm.
  expect(scoreText('mave quorb wend')['self-harm']).toBeLessThan(2_000)
})
