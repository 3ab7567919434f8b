import { createHash } from 'node:crypto'
import { gunzipSync } from 'node:zlib'

import {
  type DestinationDouble,
  type DoubleAnswer,
  type DoubleRequest,
  startDouble,
} from './double.ts'
import { checkSignature, type Refusal, refuse, type Signer } from './s3-signature.ts'

type S3Options = Partial<Settings> & { port?: number }
type Settings = Signer & {
  bucket: string
  /** Which encryption the bucket demands. */
  encryption?: 'AES256' | 'aws:kms'
}
export type S3Double = DestinationDouble & {
  /** What is stored, by key. */
  readonly objects: Map<string, Buffer>
}
const defaults = {
  bucket: 'audit',
  region: 'eu-central-1',
  accessKeyId: 'AKIAEXAMPLE',
  secretAccessKey: 'secret/access+key',
  now: () => new Date(),
}

/** A store with one bucket that only takes objects. Amazon's own code says which signature is right. */
export async function startS3Double({ port, ...options }: S3Options = {}): Promise<S3Double> {
  const settings: Settings = { ...defaults, ...options }
  const received: Record<string, unknown>[] = []
  const problems: string[] = []
  const objects = new Map<string, Buffer>()

  async function answer(request: DoubleRequest): Promise<DoubleAnswer> {
    const refusal = (await checkSignature(request, settings)) ?? checkRequest(request, settings)
    if (refusal) {
      problems.push(`${refusal.code}: ${refusal.message}`)
      return { status: refusal.status, headers: xml, body: writeError(refusal) }
    }
    const key = decodeURIComponent(request.url.pathname).slice(`/${settings.bucket}/`.length)
    const earlier = objects.get(key)
    if (earlier && !earlier.equals(request.body)) problems.push(`${key} was changed.`)
    objects.set(key, request.body)
    if (!earlier) received.push(...readLines(key, request, problems))
    return { status: 200, headers: { etag: `"${md5(request.body).toString('hex')}"` } }
  }

  const started = await startDouble(answer, port)
  return Object.assign(started, { received, problems, objects })
}

const xml = { 'content-type': 'application/xml' }
const writeError = ({ code, message, more = '' }: Refusal) =>
  `<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>${code}</Code>` +
  `<Message>${message}</Message>${more}<RequestId>1</RequestId></Error>`

const md5 = (data: Buffer) => createHash('md5').update(data).digest()

const keyForm =
  /^[\w!.*'()/=-]*(date=\d{4}-\d\d-\d\d\/part-\d{12}-\d{12}\.jsonl(\.gz)?|checkpoints\/date=\d{4}-\d\d-\d\d\/checkpoint-\d{12}(-\d{12})?\.jsonl(\.gz)?|digests\/date=\d{4}-\d\d-\d\d\/digest-\d{4}-\d{12}-\d{12}\.json)$/

function checkRequest(request: DoubleRequest, settings: Settings): Refusal | undefined {
  const { method, url, headers, body } = request
  const { bucket, encryption } = settings
  if (method !== 'PUT') return refuse(405, 'MethodNotAllowed', 'The method is not allowed.')
  if (!url.pathname.startsWith(`/${bucket}/`)) {
    return refuse(404, 'NoSuchBucket', 'The specified bucket does not exist')
  }
  if (headers['content-md5'] !== md5(body).toString('base64')) {
    return refuse(400, 'BadDigest', 'The Content-MD5 you specified did not match what we received.')
  }
  if (headers['transfer-encoding'] !== undefined) {
    return refuse(411, 'MissingContentLength', 'You must provide the Content-Length HTTP header.')
  }
  if (headers['content-encoding'] !== undefined) {
    return refuse(400, 'InvalidArgument', 'Athena reads .gz files without Content-Encoding only.')
  }
  const given = headers['x-amz-server-side-encryption']
  if (given !== undefined && given !== 'AES256' && given !== 'aws:kms') {
    return refuse(400, 'InvalidArgument', 'The encryption method specified is not supported')
  }
  if (encryption !== undefined && given !== encryption) {
    return refuse(403, 'AccessDenied', 'The bucket demands encryption.')
  }
  const key = decodeURIComponent(url.pathname)
  if (!keyForm.test(key)) return refuse(400, 'InvalidArgument', `The key ${key} has another form.`)
  return undefined
}

/** The records of an object; digests have none. */
function readLines(key: string, { headers, body }: DoubleRequest, problems: string[]) {
  const isDigest = key.includes('digests/')
  const type = isDigest ? 'application/json' : 'application/x-ndjson'
  if (headers['content-type'] !== type) problems.push(`${key} is not ${type}.`)
  const text = (key.endsWith('.gz') ? gunzipSync(body) : body).toString()
  if (!text.endsWith('\n')) problems.push(`${key} does not end with a newline.`)
  const records = text
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>)
  if (isDigest) return []
  const [, day = ''] = /date=(\d{4}-\d\d-\d\d)\//.exec(key) ?? []
  for (const record of records) {
    const createdAt = String(record['created_at'])
    if (!createdAt.startsWith(day)) problems.push(`${key} has a record of ${createdAt}.`)
    const isCheckpoint = record['event_type'] === 'checkpoint'
    if (isCheckpoint !== key.includes('checkpoints/')) problems.push(`${key} has a wrong record.`)
  }
  return records
}
