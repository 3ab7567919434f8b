import { expect, test } from 'vitest'

import { openai } from './openai.ts'
import { readRecorded } from './testing/recorded.ts'

const toSegment = (text: string) => ({ role: 'user' as const, text })
const texts = readRecorded('openai-texts')
const segments = [texts.input].flat().map(toSegment)

test('texts are sent together, as strings', () => {
  expect(openai.toCalls(segments, 'omni-moderation-latest')).toEqual([
    { path: '/v1/moderations', body: { model: 'omni-moderation-latest', input: texts.input } },
  ])
})

test('a category has the highest score of its sub-categories', () => {
  expect(openai.readReplies([texts.reply], segments)).toEqual([
    { harassment: 1, hate: 1, illicit: 1, sexual: 8912, 'self-harm': 1, 'sexual/minors': 9731 },
    { harassment: 43, hate: 1, illicit: 1, sexual: 1, 'self-harm': 1, 'sexual/minors': 1 },
    { harassment: 1, hate: 1, illicit: 3000, sexual: 1, 'self-harm': 8765, 'sexual/minors': 1 },
  ])
})

const imageUrl = 'https://images.example.com/1.png'
const image = { type: 'image_url', image_url: { url: imageUrl } }

test('an image is sent as a part, with its text if it has one', () => {
  const inputOf = (text: string) => openai.toCalls([{ role: 'user', text, imageUrl }], 'm')[0]?.body
  expect(inputOf('')).toEqual({ model: 'm', input: [image] })
  expect(inputOf('look')).toEqual({ model: 'm', input: [{ type: 'text', text: 'look' }, image] })
})

test('of an image only those categories count that are looked for in images', () => {
  const { reply } = readRecorded('openai-image')
  const read = (text: string) => openai.readReplies([reply], [{ role: 'user', text, imageUrl }])
  expect(read('')).toEqual([{ sexual: 6102, 'self-harm': 200 }])
  expect(Object.keys(read('with a text')[0]!)).toHaveLength(6)
})

test('a model that does not know illicit leaves it unscored, and no other', () => {
  const { reply } = readRecorded('openai-older-model')
  const [scores] = openai.readReplies([reply], segments.slice(0, 1))
  expect(scores).toEqual({
    harassment: 1,
    hate: 2000,
    sexual: 1,
    'self-harm': 1,
    'sexual/minors': 1,
  })
})

test.each([
  ['no result for one text', (results: unknown[]) => results.pop()],
  ['one result too many', (results: unknown[]) => results.push(results[0])],
])('%s is a failure', (_, change) => {
  const { reply } = readRecorded('openai-texts')
  change(reply.results)
  expect(() => openai.readReplies([reply], segments)).toThrow('results for 3 texts')
})

test.each([
  ['sexual/minors', undefined, 'no score for sexual/minors'],
  ['sexual/minors', null, 'no score for sexual/minors'],
  ['self-harm/intent', 1.2, 'not between 0 and 1'],
  ['hate', '0.1', 'no usable'],
])('a score of %s that is %s is a failure', (name, score, message) => {
  const { reply } = readRecorded('openai-texts')
  reply.results[0]!['category_scores']![name] = score
  const sent: unknown = JSON.parse(JSON.stringify(reply))
  expect(() => openai.readReplies([sent], segments)).toThrow(message)
})

test.each([null, {}, [], 'text', { results: null }, { error: { message: 'x' } }])(
  'case %#: what is no reply is a failure that quotes nothing',
  (reply) => {
    expect(() => openai.readReplies([reply], segments)).toThrow(
      /^The scorer's reply cannot be used: it has (no usable 'results'|another form)\.$/,
    )
  },
)
