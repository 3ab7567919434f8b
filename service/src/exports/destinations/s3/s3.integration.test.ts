import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'

import { S3Config } from '@gatehouse/contract/exports/sink-config'
import { startS3Double } from '@gatehouse/tools/destinations/s3'
import { expect, test } from 'vitest'

import type { DestinationDeps, StoredObject } from '#exports/destinations/destination.ts'
import { openDeps } from '#exports/destinations/testing/open-deps.ts'
import { createCheckpoint, createItem } from '#exports/destinations/testing/records.ts'

import { s3 } from './s3.ts'

const credentials = { access_key_id: 'AKIAEXAMPLE', secret_access_key: 'secret/access+key' }

async function open(
  options: Parameters<typeof startS3Double>[0] = {},
  config: Record<string, unknown> = {},
) {
  const double = await startS3Double(options)
  const deps = openDeps([double])
  const { endpoint } = double
  const place = { bucket: 'audit', region: 'eu-central-1', endpoint }
  const checked = S3Config.parse({ ...place, ...credentials, ...config, prefix: undefined })
  // The contract refuses some prefixes, which must not be used if they are stored nevertheless.
  const parsed = { ...checked, prefix: (config['prefix'] as string | undefined) ?? checked.prefix }
  const stop = async () => {
    await deps[Symbol.asyncDispose]()
    await double[Symbol.asyncDispose]()
  }
  const send = (batch: Parameters<typeof s3.send>[1]) => s3.send(parsed, batch, deps)
  return { double, deps, config: parsed, send, [Symbol.asyncDispose]: stop }
}

const sha256 = (data: Buffer | undefined) =>
  createHash('sha256')
    .update(data ?? '')
    .digest('hex')

test('a batch becomes one compressed object with a record in each line', async () => {
  await using opened = await open()
  const batch = [createItem(7), createItem(8), createItem(9)]
  const outcome = await opened.send(batch)
  const key = 'policy-gateway/date=2026-03-05/part-000000000007-000000000009.jsonl.gz'
  const stored = opened.double.objects.get(key)
  expect(outcome).toEqual({
    kind: 'delivered',
    object: { key, sha256: sha256(stored), bytes: stored?.length, first: 7, last: 9 },
  })
  const lines = batch.map(({ json }) => `${json}\n`).join('')
  expect(gunzipSync(stored ?? '').toString()).toBe(lines)
  expect(opened.double.received).toEqual(batch.map(({ record }) => record))
  expect(opened.double.problems).toEqual([])
})

test('what is sent again is the same object with the same bytes', async () => {
  await using opened = await open()
  const first = await opened.send([createItem(1), createItem(2)])
  // The time in a gzip file is one of seconds.
  await new Promise((resolve) => setTimeout(resolve, 1100))
  expect(await opened.send([createItem(1), createItem(2)])).toEqual(first)
  const [body] = opened.double.objects.values()
  expect(body?.subarray(4, 8)).toEqual(Buffer.alloc(4))
  expect(opened.double.objects.size).toBe(1)
  expect(opened.double.received).toHaveLength(2)
  expect(opened.double.problems).toEqual([])
})

test('objects have records of one day in UTC, and checkpoints are apart', () => {
  const groups = [
    createItem(1, { created_at: '2026-03-05T23:59:59.999Z' }),
    createItem(2, { created_at: '2026-03-06T00:00:00.000Z' }),
    createItem(3, { created_at: '2026-03-06T00:30:00.000+01:00' }),
    createCheckpoint(3),
  ].map(({ record }) => s3.groupOf?.(record))
  expect(groups[0]).toBe(groups[2])
  expect(new Set(groups).size).toBe(3)
})

test('checkpoints have a folder of their own', async () => {
  await using opened = await open({}, { prefix: '' })
  await opened.send([createCheckpoint(4096)])
  await opened.send([createCheckpoint(5000), createCheckpoint(6000)])
  expect([...opened.double.objects.keys()]).toEqual([
    'checkpoints/date=2026-03-05/checkpoint-000000004096.jsonl.gz',
    'checkpoints/date=2026-03-05/checkpoint-000000005000-000000006000.jsonl.gz',
  ])
  expect(opened.double.problems).toEqual([])
})

test('every prefix that may be configured is signed as it is sent', async () => {
  const prefix = "a/b=c/_!.*'()-/"
  await using opened = await open({}, { prefix, compression: 'none' })
  expect(await opened.send([createItem(1)])).toMatchObject({ kind: 'delivered' })
  const key = `${prefix}date=2026-03-05/part-000000000001-000000000001.jsonl`
  expect(opened.double.objects.get(key)?.toString()).toBe(`${createItem(1).json}\n`)
  expect(opened.double.problems).toEqual([])
})

test('a prefix that would lead out of the bucket is not used', async () => {
  for (const prefix of ['../other/', 'a/./', 'a/../../', '..']) {
    await using opened = await open({}, { prefix })
    const outcome = await opened.send([createItem(1)])
    const isKept = prefix === '..' // a name that only begins with dots is a name like others
    expect(outcome.kind).toBe(isKept ? 'delivered' : 'misconfigured')
    expect(opened.deps.calls).toHaveLength(isKept ? 1 : 0)
  }
})

test('the store is told how to encrypt', async () => {
  await using simple = await open({ encryption: 'AES256' }, { sse: 'AES256' })
  expect(await simple.send([createItem(1)])).toMatchObject({ kind: 'delivered' })
  const kms = { sse: 'aws:kms', kms_key_id: 'arn:aws:kms:eu-central-1:1:key/a' }
  await using managed = await open({ encryption: 'aws:kms' }, kms)
  expect(await managed.send([createItem(1)])).toMatchObject({ kind: 'delivered' })
  expect(managed.deps.calls[0]?.headers).toMatchObject({
    'x-amz-server-side-encryption': 'aws:kms',
    'x-amz-server-side-encryption-aws-kms-key-id': kms.kms_key_id,
  })
})

test('Amazon has a host name for each bucket', async () => {
  const addresses: string[] = []
  const deps: DestinationDeps = {
    request(address) {
      addresses.push(address)
      return Promise.resolve({ status: 200, headers: {}, body: Buffer.alloc(0) })
    },
    now: () => new Date(),
    signal: new AbortController().signal,
  }
  const config = S3Config.parse({ bucket: 'audit', region: 'eu-central-1', ...credentials })
  await s3.send(config, [createItem(1)], deps)
  const host = 'https://audit.s3.eu-central-1.amazonaws.com/'
  const path = 'policy-gateway/date%3D2026-03-05/part-000000000001-000000000001.jsonl.gz'
  expect(addresses).toEqual([host + path])
  expect(s3.addressOf(config)).toBe(host)
})

test.each([
  ['a secret of another key', { secretAccessKey: 'other' }, 'does not belong'],
  ['an unknown key', { accessKeyId: 'AKIAOTHER' }, 'does not know the access key id'],
  ['a missing bucket', { bucket: 'other' }, 'The bucket does not exist.'],
  ['another region', { region: 'us-east-1' }, 'in another region. It says us-east-1.'],
  ['missing encryption', { encryption: 'AES256' as const }, 'may not write to the bucket'],
  ['a wrong clock', { now: () => new Date(Date.now() + 3_600_000) }, 'The clocks'],
])('%s is named', async (_, options, sentence) => {
  await using opened = await open(options)
  const outcome = await opened.send([createItem(1)])
  expect(outcome).toMatchObject({ kind: 'misconfigured' })
  expect(JSON.stringify(outcome)).toContain(sentence)
  expect(opened.double.objects.size).toBe(0)
})

test.each([
  [301, 'PermanentRedirect', 'misconfigured'],
  [400, 'EntityTooLarge', 'refused'],
  [400, 'RequestTimeout', 'failed'],
  [400, 'KMS.DisabledException', 'misconfigured'],
  [409, 'OperationAborted', 'failed'],
  [413, '', 'refused'],
  [429, '', 'failed'],
  [500, 'InternalError', 'failed'],
  [503, 'SlowDown', 'failed'],
])('%i %s is %s', async (status, code, kind) => {
  await using opened = await open()
  const message = `no\n  ${credentials.secret_access_key} &lt;`
  const body = `<Error><Code>${code}</Code><Message>${message}</Message></Error>`
  opened.double.intervene(() => ({ status, body, headers: { 'retry-after': '3' } }))
  const outcome = await opened.send([createItem(1)])
  expect(outcome).toMatchObject({ kind, error: expect.stringContaining(`answered ${status}`) })
  expect(JSON.stringify(outcome)).toContain('no *** &lt;')
  if (status === 503) expect(outcome).toMatchObject({ retryAfterMs: 3000 })
})

test('a digest lists the objects, and names the digest before it', async () => {
  await using opened = await open()
  const objects: StoredObject[] = []
  for (const batch of [[createItem(1), createItem(2)], [createItem(3)], [createCheckpoint(3)]]) {
    const outcome = await opened.send(batch)
    if (outcome.kind === 'delivered' && outcome.object) objects.push(outcome.object)
  }
  const [first, ...others] = objects
  const time = { from: '2026-03-05T23:00:00.000Z', to: '2026-03-06T00:00:00.000Z' }
  const digest = { orgId: 'org_1', ...time, objects: [first!, ...others], previous: null } as const
  const outcome = await s3.sendDigest?.(opened.config, digest, opened.deps)
  const name = 'digest-2300-000000000001-000000000003.json'
  const key = `policy-gateway/digests/date=2026-03-05/${name}`
  const stored = opened.double.objects.get(key)
  expect(outcome).toEqual({
    kind: 'delivered',
    object: { key, sha256: sha256(stored), bytes: stored?.length, first: 1, last: 3 },
  })
  expect(JSON.parse(String(stored))).toEqual({
    version: 1,
    org_id: 'org_1',
    ...time,
    first: 1,
    last: 3,
    previous: null,
    objects,
  })
  for (const object of objects) {
    expect(sha256(opened.double.objects.get(object.key))).toBe(object.sha256)
  }
  expect(opened.double.problems).toEqual([])
})
