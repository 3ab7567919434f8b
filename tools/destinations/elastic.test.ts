import { Client } from '@elastic/elasticsearch'
import { expect, test } from 'vitest'

import { startElasticDouble } from './elastic.ts'

// The official client takes the double for an Elasticsearch.

const stream = 'logs-policy_gateway.audit-default'
const document = { '@timestamp': '2026-03-05T23:59:59.123Z', size: 1 }

async function open(options: Parameters<typeof startElasticDouble>[0] = {}) {
  const double = await startElasticDouble({ authorization: 'ApiKey a2V5', ...options })
  const { endpoint: node, ca } = double
  const client = new Client({ node, auth: { apiKey: 'a2V5' }, tls: { ca }, maxRetries: 0 })
  const stop = async () => {
    await client.close()
    await double[Symbol.asyncDispose]()
  }
  return { double, client, [Symbol.asyncDispose]: stop }
}

const create = (_id: string, source: object = document) => [
  { create: { _index: stream, _id } },
  source,
]

test('documents are created, and conflict when they come again', async () => {
  await using opened = await open()
  const { client, double } = opened
  const first = await client.bulk({ operations: [...create('a'), ...create('b')] })
  expect(first.errors).toBe(false)
  expect(first.items.map(({ create: item }) => item?.status)).toEqual([201, 201])
  const second = await client.bulk({ operations: [...create('b'), ...create('c')] })
  expect(second.errors).toBe(true)
  expect(second.items.map(({ create: item }) => item?.status)).toEqual([409, 201])
  expect(second.items[0]?.create?.error?.type).toBe('version_conflict_engine_exception')
  expect(double.received).toEqual([document, document, document])
  expect(double.problems).toEqual([])
})

test('a document that does not fit is refused, and the others are not', async () => {
  await using opened = await open({ numberFields: ['size'] })
  const operations = [...create('a', { ...document, size: 'x' }), ...create('b')]
  const { items } = await opened.client.bulk({ operations })
  expect(items.map(({ create: item }) => item?.status)).toEqual([400, 201])
  expect(items[0]?.create?.error).toMatchObject({ type: 'document_parsing_exception' })
})

test('a data stream takes the action create only, and documents with a timestamp', async () => {
  await using opened = await open()
  const index = { index: { _index: stream, _id: 'a' } }
  const { items } = await opened.client.bulk({ operations: [index, document, ...create('b', {})] })
  expect(items[0]?.index).toMatchObject({ status: 400 })
  expect(items[1]?.create).toMatchObject({ status: 400 })
  const other = [{ index: { _index: 'other', _id: 'a' } }, document]
  const twice = await opened.client.bulk({ operations: [...other, ...other] })
  expect(twice.items.map(({ index: item }) => item?.status)).toEqual([201, 200])
  expect(opened.double.problems).toHaveLength(2)
})

test('other credentials are refused', async () => {
  await using opened = await open({ authorization: 'ApiKey b3RoZXI=' })
  await expect(opened.client.bulk({ operations: create('a') })).rejects.toMatchObject({
    statusCode: 401,
  })
})

test('an answer has only what filter_path asks for', async () => {
  await using opened = await open()
  const filter_path = 'errors,items.*.status,items.*.error.type'
  const operations = [...create('a'), ...create('a')]
  expect(await opened.client.bulk({ operations, filter_path })).toEqual({
    errors: true,
    items: [
      { create: { status: 201 } },
      { create: { status: 409, error: { type: 'version_conflict_engine_exception' } } },
    ],
  })
})
