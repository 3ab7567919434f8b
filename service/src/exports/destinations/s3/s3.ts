import { createHash } from 'node:crypto'

import type { S3Config } from '@gatehouse/contract/exports/sink-config'

import { addPath } from '#exports/destinations/address.ts'
import { compress } from '#exports/destinations/compress.ts'
import type {
  DestinationDeps,
  DestinationType,
  DeliveryOutcome,
  StoredObject,
} from '#exports/destinations/destination.ts'
import { withoutSinkSecrets } from '#exports/destinations/without-secrets.ts'

import { writeDigest } from './digest.ts'
import { groupOf, nameObject } from './object-name.ts'
import { encodeKey, signRequest } from './sign-v4.ts'
import { outcomeOfStore } from './store-answer.ts'

type Named = Pick<StoredObject, 'key' | 'first' | 'last'>
type Content = { body: Buffer; type: string }

/**
 * One object for each batch. Node writes no time into what it compresses, so the same batch always becomes the same
 * bytes, and sending it again changes nothing.
 */
export const s3: DestinationType<S3Config> = {
  limits: { itemsMax: 10_000, bytesMax: 5_000_000 },
  patienceMs: 60_000,
  groupOf,
  addressOf: (config) => storeOf(config),
  async send(config, batch, deps) {
    const lines = Buffer.from(batch.map(({ json }) => `${json}\n`).join(''))
    const body = config.compression === 'gzip' ? await compress(lines) : lines
    const content = { body, type: 'application/x-ndjson' }
    return put(config, nameObject(config, batch), content, deps)
  },
  sendDigest(config, digest, deps) {
    const { text, ...named } = writeDigest(config.prefix, digest)
    return put(config, named, { body: Buffer.from(text), type: 'application/json' }, deps)
  },
}

/** Other stores have the bucket in the path. So has Amazon if its name has a dot, because its certificate covers no such host. */
const isInPath = ({ endpoint, bucket }: S3Config) => endpoint !== undefined || bucket.includes('.')

/** Otherwise Amazon has a host name for each bucket. */
const storeOf = (config: S3Config) =>
  config.endpoint ??
  `https://${isInPath(config) ? '' : `${config.bucket}.`}s3.${config.region}.amazonaws.com/`

async function put(
  config: S3Config,
  { key, first, last }: Named,
  { body, type }: Content,
  deps: DestinationDeps,
): Promise<DeliveryOutcome> {
  const path = `${isInPath(config) ? `/${config.bucket}` : ''}/${encodeKey(key)}`
  const url = addPath(storeOf(config), path)
  if (!url.pathname.endsWith(path)) {
    return { kind: 'misconfigured', error: 'The prefix has a folder named . or ..' }
  }
  const unsigned = { method: 'PUT', url, headers: headersOf(config, type, body), body } as const
  const headers = signRequest(unsigned, config, deps.now())
  const answer = await deps.request(url.href, { method: 'PUT', headers, body })
  if (answer.status !== 200) return outcomeOfStore(answer, cleanerOf(config))
  const sha256 = createHash('sha256').update(body).digest('hex')
  return { kind: 'delivered', object: { key, sha256, bytes: body.length, first, last } }
}

const cleanerOf =
  ({ secret_access_key }: S3Config) =>
  (text: string) =>
    withoutSinkSecrets(text, [secret_access_key])

/** Buckets with Object Lock refuse objects that come without a checksum of this kind. */
function headersOf({ sse, kms_key_id }: S3Config, type: string, body: Buffer) {
  return {
    'content-type': type,
    'content-md5': createHash('md5').update(body).digest('base64'),
    ...(sse && { 'x-amz-server-side-encryption': sse }),
    ...(sse === 'aws:kms' &&
      kms_key_id !== undefined && { 'x-amz-server-side-encryption-aws-kms-key-id': kms_key_id }),
  }
}
