import { createHash, createHmac } from 'node:crypto'

/** AWS Signature Version 4 for S3, with the signature in a header and the hash of the body in it. */

type Credentials = {
  access_key_id: string
  secret_access_key: string
  region: string
}
type Unsigned = {
  method: string
  /** Its path must be written as `encodeKey` does. No query. */
  url: URL
  /** All of them are signed. */
  headers: Readonly<Record<string, string>>
  body: Uint8Array
}

/** The headers with those that the signature adds. */
export function signRequest(
  request: Unsigned,
  { access_key_id, secret_access_key, region }: Credentials,
  at: Date,
): Record<string, string> {
  const time = at.toISOString().replaceAll(/[:-]|\.\d{3}/g, '')
  const scope = [time.slice(0, 8), region, 's3', 'aws4_request']
  const headers = {
    ...request.headers,
    'x-amz-content-sha256': sha256(request.body),
    'x-amz-date': time,
  }
  const { text, names } = canonicalRequest(request, headers)
  const toSign = ['AWS4-HMAC-SHA256', time, scope.join('/'), sha256(text)].join('\n')
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${secret_access_key}`)
  const authorization =
    `AWS4-HMAC-SHA256 Credential=${access_key_id}/${scope.join('/')}, ` +
    `SignedHeaders=${names}, Signature=${hmac(key, toSign).toString('hex')}`
  return { ...headers, authorization }
}

function canonicalRequest(request: Unsigned, headers: Record<string, string>) {
  const signed = Object.entries({ ...headers, host: request.url.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replaceAll(/ +/g, ' ')] as const)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
  const names = signed.map(([name]) => name).join(';')
  const lines = signed.map(([name, value]) => `${name}:${value}\n`).join('')
  const hash = headers['x-amz-content-sha256']
  const text = [request.method, request.url.pathname, '', lines, names, hash].join('\n')
  return { text, names }
}

/** A key as it stands in a path: S3 encodes more characters than a URL has to. */
export const encodeKey = (key: string) =>
  encodeURIComponent(key)
    .replaceAll(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%2F', '/')

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex')
const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest()
