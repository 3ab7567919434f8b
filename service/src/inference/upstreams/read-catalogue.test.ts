import { readFile } from 'node:fs/promises'

import { expect, test } from 'vitest'

import { upstreamFormats } from '#formats/formats.ts'

import { readCatalogue } from './read-catalogue.ts'

const upstream = { kind: 'openai', base_url: 'https://models.example/v1', key: { env: 'A_KEY' } }
const model = {
  id: 'small',
  context_tokens: 1000,
  max_output_tokens: 500,
  prices: { input: '0.15', output: '0.6' },
  upstreams: [{ upstream: 'first' }],
}
const good = { upstreams: { first: upstream }, models: [model] }
const options = { formats: upstreamFormats, readSecret: () => 'secret' }
const read = (file: unknown) => readCatalogue(JSON.stringify(file), options)
const withModel = (changes: object) => ({ ...good, models: [{ ...model, ...changes }] })

test('what is not said has a default', () => {
  const [small] = read(good).models
  expect(small).toMatchObject({
    displayName: 'small',
    ownedBy: 'gatehouse',
    createdAt: '2026-01-01T00:00:00Z',
    defaultOutputTokens: 500,
    price: { input: 150_000n, output: 600_000n, cachedInput: 150_000n, cacheWrite: 150_000n },
    usdPerMillion: { input: '0.15', output: '0.6', cachedInput: '0.15', cacheWrite: '0.15' },
    capabilities: { tools: true, images: true, documents: true, reasoning: true, jsonSchema: true },
    canAnswerPlainly: true,
    upstreams: [{ model: 'small', upstream: { name: 'first', secret: 'secret' } }],
  })
  expect(small?.upstreams[0]?.upstream.formats.map(({ name }) => name)).toEqual([
    'responses',
    'chat_completions',
  ])
})

test('a model can be kept from answering plainly', () => {
  expect(read(withModel({ plain: false })).models[0]?.canAnswerPlainly).toBe(false)
  expect(() => read(withModel({ plain: 'no' }))).toThrow('models.small.plain: must be')
})

test('a model is found by its id and by its aliases, and by nothing else', () => {
  const catalogue = read(withModel({ aliases: ['tiny', 'vendor/tiny:1'] }))
  expect(['small', 'tiny', 'vendor/tiny:1', 'Small', 'toString'].map(catalogue.find)).toEqual([
    catalogue.models[0],
    catalogue.models[0],
    catalogue.models[0],
    undefined,
    undefined,
  ])
})

const formatsOf = (changes: object) => {
  const [first] = read({ ...good, upstreams: { first: { ...upstream, ...changes } } }).upstreams
  return [first?.formats.map(({ name }) => name), first?.credentialFormat.name]
}

test.each([
  [{ kind: 'anthropic' }, ['messages'], 'messages'],
  [{ formats: ['chat_completions'] }, ['chat_completions'], 'chat_completions'],
  [{ protocols: ['chat_completions'] }, ['chat_completions'], 'chat_completions'],
  [{ kind: 'anthropic', formats: ['chat_completions'] }, ['chat_completions'], 'messages'],
  [{ kind: 'openai', formats: ['messages'] }, ['messages'], 'chat_completions'],
  [{ kind: undefined, formats: ['messages', 'responses'] }, ['messages', 'responses'], 'messages'],
])('%j gives the formats %j and the credential header of %s', (changes, formats, credential) => {
  expect(formatsOf(changes)).toEqual([formats, credential])
})

test.each([
  [
    { formats: ['gemini'] },
    "there is no format 'gemini'; known are messages, responses, chat_completions",
  ],
  [
    { formats: ['messages'], protocols: ['messages'] },
    "'protocols' is the older name of 'formats'; keep one",
  ],
  [{ kind: undefined }, "upstreams.first: needs a 'kind' or 'formats'"],
  [{ formats: [] }, 'upstreams.first.formats: must name at least one format'],
])('refused: an upstream with %j', (changes, words) => {
  expect(() => formatsOf(changes)).toThrow(words)
})

test('no name of the file is left as it is written there', () => {
  const { models, upstreams } = read(good)
  const names = [...models, ...upstreams].flatMap((each) => Object.keys(each))
  expect(names.filter((name) => name.includes('_'))).toEqual([])
})

test('the example has one upstream, and prices with their date', async () => {
  const file = new URL('../../../../deploy/models.example.json', import.meta.url)
  const text = await readFile(file, 'utf8')
  const { models, upstreams } = readCatalogue(text, options)
  expect(upstreams.map(({ name }) => name)).toEqual(['anthropic'])
  expect(models.map(({ id, usdPerMillion }) => [id, ...Object.values(usdPerMillion)])).toEqual([
    ['claude-sonnet', '3', '15', '0.30', '3.75'],
    ['claude-haiku', '1', '5', '0.10', '1.25'],
  ])
  const entries = (JSON.parse(text) as { models: { prices_as_of: string }[] }).models
  const page = await readFile(new URL('../../../../docs/models.md', import.meta.url), 'utf8')
  for (const { prices_as_of } of entries)
    expect(page).toContain(`"prices_as_of": "${prices_as_of}"`)
})

const withUpstream = (changes: object) => ({
  ...good,
  upstreams: { first: { ...upstream, ...changes } },
})

test.each([
  [
    'no JSON',
    '{\n  "models": [],\n}',
    'line 3, column 1: it is not JSON; expected a name in double quotes',
  ],
  ['no text', '', 'line 1, column 1: it is not JSON; expected a value'],
  ['another kind of JSON', '[]', 'the file: must be an object'],
  ['an unknown member', { ...good, colour: 'red' }, "the file: has no member 'colour'"],
  [
    'an unknown member of a model',
    withModel({ colour: 'red' }),
    "models.small: has no member 'colour'",
  ],
  [
    'an unknown member of an upstream',
    withUpstream({ colour: 'red' }),
    "upstreams.first: has no member 'colour'",
  ],
  [
    'an address of another scheme',
    withUpstream({ base_url: 'ftp://a' }),
    'upstreams.first.base_url: must be an http or https address',
  ],
  ['no address', withUpstream({ base_url: undefined }), 'upstreams.first.base_url: is required'],
  [
    'another kind',
    withUpstream({ kind: 'x' }),
    'upstreams.first.kind: must be one of openai, anthropic',
  ],
  [
    'a secret in the file',
    withUpstream({ key: 'sk-canary' }),
    'upstreams.first.key: must be {"env": "VARIABLE"} or {"file": "/path"}, never the key itself',
  ],
  [
    'a timeout of nothing',
    withUpstream({ idle_timeout_ms: 0 }),
    'upstreams.first.idle_timeout_ms: must be at least 1',
  ],
  [
    'a bad name of an upstream',
    { ...good, upstreams: { first: upstream, 'a b': upstream } },
    'upstreams.a b: its name must be 1 to 200 letters, digits or ._:/@-',
  ],
  [
    'a price as a number',
    withModel({ prices: { input: 1, output: '1' } }),
    'models.small.prices.input: must be US dollars per million tokens, as text like "0.15"',
  ],
  [
    'a price too fine',
    withModel({ prices: { input: '0.0000001', output: '1' } }),
    'models.small.prices.input: must be US dollars per million tokens, as text like "0.15"',
  ],
  ['no price', withModel({ prices: { output: '1' } }), 'models.small.prices.input: is required'],
  [
    'a date that is none',
    withModel({ prices_as_of: 'today' }),
    'models.small.prices_as_of: must be a date like "2026-01-31"',
  ],
  [
    'no upstream',
    withModel({ upstreams: [] }),
    'models.small.upstreams: must name at least one upstream',
  ],
  [
    'an upstream that is not there',
    withModel({ upstreams: [{ upstream: 'first' }, { upstream: 'x' }] }),
    "models.small.upstreams[1]: there is no upstream 'x'",
  ],
  [
    'an alias that is taken',
    withModel({ aliases: ['small'] }),
    "models.small: 'small' already names models.small",
  ],
  ['a model without an id', withModel({ id: undefined }), 'models[0].id: is required'],
  [
    'a bad id',
    withModel({ id: 'a b' }),
    'models[0].id: must be 1 to 200 letters, digits or ._:/@-',
  ],
])('refused, with the place: %s', (_, file, line) => {
  const text = typeof file === 'string' ? file : JSON.stringify(file)
  const refusal = () => readCatalogue(text, options)
  expect(refusal).toThrow(new Error(`  ${line}`))
  expect(refusal).not.toThrow('canary')
})

test('everything that is wrong is listed, the first twenty with their places', () => {
  const broken = { ...model, context_tokens: 0 }
  const models = Array.from({ length: 25 }, (_, index) => ({ ...broken, id: `model-${index}` }))
  const many = () => read({ upstreams: { first: { ...upstream, base_url: 'x' } }, models })
  expect(many).toThrow(/^ {2}upstreams.first.base_url: .*\n {2}models.model-0.context_tokens: /)
  expect(many).toThrow(/models.model-18.context_tokens: must be at least 1\n {2}and 6 more$/)
})

test('what only shows when the parts are put together is listed as well', () => {
  const readSecret = () => {
    throw new Error('the environment variable A_KEY is not set')
  }
  const file = {
    upstreams: { first: upstream, second: { ...upstream, formats: ['gemini'] } },
    models: [model, { ...model, upstreams: [{ upstream: 'third' }] }],
  }
  expect(() => readCatalogue(JSON.stringify(file), { ...options, readSecret })).toThrow(
    new Error(
      [
        "  models.small.upstreams[0]: there is no upstream 'third'",
        '  upstreams.first.key: the environment variable A_KEY is not set',
        "  upstreams.second: there is no format 'gemini'; known are messages, responses, chat_completions",
        '  upstreams.second.key: the environment variable A_KEY is not set',
        "  models.small: 'small' already names models.small",
      ].join('\n'),
    ),
  )
})

test('media_urls is decided by the address of the upstream unless it is given', () => {
  const mediaUrlsOf = (changes: object) =>
    read({ ...good, upstreams: { first: { ...upstream, ...changes } } }).upstreams[0]?.mediaUrls
  expect(mediaUrlsOf({ base_url: 'https://models.example.com/v1' })).toBe('public')
  expect(mediaUrlsOf({ base_url: 'http://vllm:8000/v1' })).toBe('refuse')
  expect(mediaUrlsOf({ base_url: 'http://vllm:8000/v1', media_urls: 'any' })).toBe('any')
  expect(() => mediaUrlsOf({ media_urls: 'private' })).toThrow(
    'upstreams.first.media_urls: must be one of refuse, public, any',
  )
})
