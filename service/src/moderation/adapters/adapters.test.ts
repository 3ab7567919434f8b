import { expect, test } from 'vitest'

import { alwaysBlocked, categories, type Category } from '#moderation/categories.ts'

import { type AdapterName, adapterNames, adapters } from './adapters.ts'

test('only these adapters score both categories that are always blocked', () => {
  const coversBoth = (name: AdapterName) =>
    alwaysBlocked.every((category: Category) => adapters[name].covers.has(category))
  expect(adapterNames.filter(coversBoth)).toEqual(['openai', 'llama_guard', 'scripted'])
})

test('scripted: a text says its scores itself', () => {
  const text = `[[cat:sexual/minors=0.97]] and [[cat:hate=0.2]] [[cat:hate=0.4]] [[cat:hate=7]] [[cat:x=1]]`
  const [marked, plain] = adapters.scripted.readReplies(
    [],
    [
      { role: 'user', text },
      { role: 'user', text: 'plain' },
    ],
  )
  const none = Object.fromEntries(categories.map((each) => [each, 0]))
  expect(marked).toEqual({ ...none, 'sexual/minors': 9700, hate: 4000 })
  expect(plain).toEqual(none)
})

test.each(['[[cat:self- harm=0.9]]', '[[cat: self-\nharm = 0.9 ]]', '[ [ cat:self-harm=0. 9] ]'])(
  'scripted: white space inside of a mark does not count: %j',
  (text) => {
    const [scores] = adapters.scripted.readReplies([], [{ role: 'user', text }])
    expect(scores).toMatchObject({ 'self-harm': 9000 })
  },
)
