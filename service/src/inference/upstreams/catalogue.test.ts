import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { readCatalogue } from './catalogue.ts'

const upstream = { kind: 'openai', base_url: 'https://models.example/v1', key: { env: 'A_KEY' } }
const model = {
  ...{ id: 'small', context_tokens: 1000, max_output_tokens: 500 },
  prices: { input: '0.15', output: '0.6' },
  upstreams: [{ upstream: 'first' }],
}
const good = { upstreams: { first: upstream }, models: [model] }
const read = (file: unknown) => readCatalogue(JSON.stringify(file), () => 'secret')
const withModel = (changes: object) => ({ ...good, models: [{ ...model, ...changes }] })

test('what is not said has a default', () => {
  const [small] = read(good).models
  expect(small).toMatchObject({
    display_name: 'small',
    default_output_tokens: 500,
    price: { input: 150_000n, output: 600_000n, cachedInput: 150_000n, cacheWrite: 150_000n },
    upstreams: [{ model: 'small', upstream: { name: 'first', secret: 'secret' } }],
  })
  expect(small?.upstreams[0]?.upstream.protocols).toEqual(['responses', 'chat_completions'])
})

test('a model is found by its id and by its aliases, and by nothing else', () => {
  const catalogue = read(withModel({ aliases: ['tiny', 'vendor/tiny:1'] }))
  expect(['small', 'tiny', 'vendor/tiny:1', 'Small', 'toString'].map(catalogue.find)).toEqual([
    ...[catalogue.models[0], catalogue.models[0], catalogue.models[0]],
    ...[undefined, undefined],
  ])
})

test('the example that ships is good', async () => {
  const file = new URL('../../../../deploy/models.example.json', import.meta.url)
  const { models } = readCatalogue(await readFile(file, 'utf8'), () => 'secret')
  expect(models.map(({ prices }) => [prices.input, prices.output])).toEqual([
    ['5', '5'],
    ['5', '5'],
  ])
})

test.each([
  ['no JSON', '{', 'it is not JSON'],
  ['an unknown member', withModel({ colour: 'red' }), 'models.0'],
  [
    'a price as a number',
    withModel({ prices: { input: 1, output: '1' } }),
    'models.0.prices.input',
  ],
  ['a price too fine', withModel({ prices: { input: '0.0000001', output: '1' } }), 'per million'],
  ['no upstream', withModel({ upstreams: [] }), 'models.0.upstreams'],
  ['an upstream that is not there', withModel({ upstreams: [{ upstream: 'x' }] }), "upstream 'x'"],
  ['an alias that is taken', withModel({ aliases: ['small'] }), "'small' names two models"],
  [
    'another scheme',
    { ...good, upstreams: { first: { ...upstream, base_url: 'ftp://a' } } },
    'base_url',
  ],
  [
    'a secret in the file',
    { ...good, upstreams: { first: { ...upstream, key: 'sk-canary' } } },
    'upstreams.first.key',
  ],
])('refused, with the place: %s', (_, file, words) => {
  const text = typeof file === 'string' ? file : JSON.stringify(file)
  const complain = () => readCatalogue(text, () => 'secret')
  expect(complain).toThrow(words)
  expect(complain).not.toThrow('canary')
})
