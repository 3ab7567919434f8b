import { gunzipSync } from 'node:zlib'

import { ElasticConfig } from '@gatehouse/contract/exports/sink-config'
import { startElasticDouble } from '@gatehouse/tools/destinations/elastic'
import { expect, test } from 'vitest'

import { openDeps } from '#exports/destinations/testing/open-deps.ts'
import { createItem } from '#exports/destinations/testing/records.ts'

import { elastic } from './elastic.ts'

type Options = Parameters<typeof startElasticDouble>[0]

async function open(options: Options = {}, config: Record<string, unknown> = {}) {
  const double = await startElasticDouble({ authorization: 'ApiKey a2V5OnNlY3JldA==', ...options })
  const deps = openDeps([double])
  const { endpoint } = double
  const parsed = ElasticConfig.parse({ endpoint, api_key: 'a2V5OnNlY3JldA==', ...config })
  const send = (batch: Parameters<typeof elastic.send>[1]) => elastic.send(parsed, batch, deps)
  const stop = async () => {
    await deps[Symbol.asyncDispose]()
    await double[Symbol.asyncDispose]()
  }
  return { double, deps, send, [Symbol.asyncDispose]: stop }
}

const delivered = { kind: 'delivered' }
const manyItems = Array.from({ length: 1000 }, (_, index) => createItem(index + 1))

test('events arrive flat, with a timestamp, in the default data stream', async () => {
  await using opened = await open()
  const batch = [createItem(1), createItem(2)]
  expect(await opened.send(batch)).toEqual({ kind: 'itemised', items: [delivered, delivered] })
  const stored = opened.double.indices.get('logs-policy_gateway.audit-default')
  expect([...(stored ?? [])]).toEqual(
    batch.map(({ record }) => [record.event_id, { '@timestamp': record.created_at, ...record }]),
  )
  expect(opened.double.problems).toEqual([])
})

test('the body is gzip, and ends with a newline', async () => {
  await using opened = await open()
  await opened.send([createItem(1)])
  const [call] = opened.deps.calls
  expect(call?.headers).toMatchObject({
    'content-type': 'application/x-ndjson',
    'content-encoding': 'gzip',
  })
  const lines = gunzipSync(call?.body as Buffer)
    .toString()
    .split('\n')
  expect(lines).toHaveLength(3)
  expect(lines[2]).toBe('')
})

test('an index, a dataset with its namespace and a pipeline are used', async () => {
  await using toIndex = await open({ pipelines: ['clean'] }, { index: 'audit', pipeline: 'clean' })
  await toIndex.send([createItem(1)])
  expect([...toIndex.double.indices.keys()]).toEqual(['audit'])
  await using toStream = await open({}, { dataset: 'gate.log', namespace: 'eu' })
  await toStream.send([createItem(1)])
  expect([...toStream.double.indices.keys()]).toEqual(['logs-gate.log-eu'])
})

test('user name and password may have any characters', async () => {
  const authorization = `Basic ${Buffer.from('jürgen:p:w').toString('base64')}`
  const config = { api_key: undefined, username: 'jürgen', password: 'p:w' }
  await using opened = await open({ authorization }, config)
  expect(await opened.send([createItem(1)])).toMatchObject({ kind: 'itemised' })
})

test('the configured certificates are the ones to trust', async () => {
  await using opened = await open({}, { ca_cert: 'PEM' })
  await opened.send([createItem(1)])
  expect(opened.deps.calls[0]?.tls).toEqual({ ca: 'PEM' })
})

test('what arrives again is delivered, and stored once', async () => {
  await using opened = await open()
  await opened.send([createItem(1)])
  const outcome = await opened.send([createItem(1), createItem(2)])
  expect(outcome).toEqual({ kind: 'itemised', items: [delivered, delivered] })
  expect(opened.double.received.map((record) => record['org_seq'])).toEqual([1, 2])
})

test('an item that failed without a reason is reported as others are', async () => {
  await using opened = await open()
  const items = [{ create: { status: 503, error: { type: 'unavailable', reason: null } } }]
  opened.double.intervene(() => ({ status: 200, body: JSON.stringify({ errors: true, items }) }))
  expect(await opened.send([createItem(1)])).toMatchObject({
    kind: 'itemised',
    items: [{ kind: 'failed', error: expect.stringContaining('unavailable') }],
  })
})

test('one event is refused with the reason, the others are delivered', async () => {
  await using opened = await open({ numberFields: ['size'] })
  const outcome = await opened.send([
    createItem(1),
    createItem(2, { size: 'a2V5OnNlY3JldA==' }),
    createItem(3),
  ])
  expect(outcome).toMatchObject({
    kind: 'itemised',
    items: [delivered, { kind: 'refused' }, delivered],
  })
  const text = JSON.stringify(outcome)
  expect(text).toContain('document_parsing_exception: [1:1] failed to parse field [size]')
  expect(text).toContain("'***'")
  expect(text).not.toContain('a2V5')
})

test('items that meet a busy or failing node are sent again', async () => {
  await using opened = await open()
  const error = { type: 'es_rejected_execution_exception', reason: 'queue\nis full' }
  const items = [429, 503, 201].map((status) => ({ create: { status, error } }))
  opened.double.intervene(() => ({ status: 200, body: JSON.stringify({ errors: true, items }) }))
  const outcome = await opened.send([createItem(1), createItem(2), createItem(3)])
  const text = 'es_rejected_execution_exception: queue is full'
  expect(outcome).toEqual({
    kind: 'itemised',
    items: [
      { kind: 'failed', error: `The destination refused it with 429: ${text}` },
      { kind: 'failed', error: `The destination refused it with 503: ${text}` },
      delivered,
    ],
  })
})

test('a missing permission, index or pipeline is no fault of the events', async () => {
  await using opened = await open()
  for (const [status, reason] of [
    [403, 'action [indices:data/write/bulk[s]] is unauthorized for API key id [x]'],
    [404, 'no such index [audit]'],
    [400, 'pipeline with id [x] does not exist'],
  ]) {
    const items = [{ create: { status, error: { type: 'e', reason } } }]
    opened.double.intervene(() => ({ status: 200, body: JSON.stringify({ items }) }))
    const outcome = await opened.send([createItem(1)])
    expect(outcome).toMatchObject({
      kind: 'misconfigured',
      error: expect.stringContaining(`${reason}`),
    })
  }
})

test.each([
  [401, 'misconfigured'],
  [403, 'misconfigured'],
  [404, 'misconfigured'],
  [413, 'refused'],
  [429, 'failed'],
  [500, 'failed'],
  [503, 'failed'],
])('a whole answer of %i is %s', async (status, kind) => {
  await using opened = await open()
  opened.double.intervene(() => ({ status, headers: { 'retry-after': '7' } }))
  expect(await opened.send([createItem(1)])).toMatchObject({ kind })
})

test('an answer that is not from Elasticsearch delivers nothing', async () => {
  await using opened = await open()
  for (const body of ['<html>', '{}', '{"items":[]}', '{"items":[{"index":{"status":201}}]}']) {
    opened.double.intervene(() => ({ status: 200, body }))
    expect(await opened.send([createItem(1)])).toMatchObject({ kind: 'misconfigured' })
  }
})

test('wrong credentials are named, and not shown', async () => {
  await using opened = await open({ authorization: 'ApiKey other' })
  const outcome = await opened.send([createItem(1)])
  expect(outcome).toMatchObject({ kind: 'misconfigured' })
  expect(JSON.stringify(outcome)).toContain('unable to authenticate')
  expect(JSON.stringify(outcome)).not.toContain('a2V5')
})

test('answers about a thousand events are small, also when all of them are refused', async () => {
  await using opened = await open({ numberFields: ['size'] })
  expect(await opened.send(manyItems)).toMatchObject({ kind: 'itemised' })
  const long = 'x'.repeat(2000)
  const outcome = await opened.send(manyItems.map((_, at) => createItem(5000 + at, { size: long })))
  expect(outcome).toMatchObject({ kind: 'itemised' })
  const items = outcome.kind === 'itemised' ? outcome.items : []
  expect(items).toHaveLength(1000)
  expect(new Set(items.map(({ kind }) => kind))).toEqual(new Set(['refused']))
  // With their reasons the answer was too large, so it was asked for again without them.
  expect(opened.deps.calls).toHaveLength(3)
})
