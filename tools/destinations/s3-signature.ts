import { createHash, createHmac, type Hash, type Hmac } from 'node:crypto'

import { SignatureV4 } from '@smithy/signature-v4'

import type { DoubleRequest } from './double.ts'

/** Whose signature is accepted, and when. */
export type Signer = {
  region: string
  accessKeyId: string
  secretAccessKey: string
  now: () => Date
}
export type Refusal = { status: number; code: string; message: string; more?: string }

export const refuse = (status: number, code: string, message: string, more?: string): Refusal => ({
  status,
  code,
  message,
  ...(more !== undefined && { more }),
})

const sha256 = (data: Buffer) => createHash('sha256').update(data).digest('hex')

const authorizationForm =
  /^AWS4-HMAC-SHA256 Credential=([^/,]+)\/(\d{8})\/([^/,]+)\/s3\/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?Signature=([0-9a-f]{64})$/
const timeForm = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/

/** Amazon's own code signs the request once more. */
export async function checkSignature(
  request: DoubleRequest,
  settings: Signer,
): Promise<Refusal | undefined> {
  const { headers, body } = request
  const match = authorizationForm.exec(headers.authorization ?? '')
  if (!match) return refuse(403, 'AccessDenied', 'Access Denied')
  const [, accessKeyId, , region, signedHeaders = '', signature] = match
  if (accessKeyId !== settings.accessKeyId) {
    return refuse(403, 'InvalidAccessKeyId', 'The AWS Access Key Id you provided does not exist.')
  }
  if (region !== settings.region) {
    const message = `the region '${region}' is wrong; expecting '${settings.region}'`
    const more = `<Region>${settings.region}</Region>`
    return refuse(400, 'AuthorizationHeaderMalformed', message, more)
  }
  const signingDate = readTime(headers['x-amz-date'])
  if (Math.abs(signingDate.getTime() - settings.now().getTime()) > 15 * 60_000) {
    const message = "The difference between the request time and the server's time is too large."
    return refuse(403, 'RequestTimeTooSkewed', message)
  }
  if (headers['x-amz-content-sha256'] !== sha256(body)) {
    const message = 'The provided x-amz-content-sha256 header does not match what was computed.'
    return refuse(400, 'XAmzContentSHA256Mismatch', message)
  }
  const names = signedHeaders.split(';')
  const unsigned = Object.keys(headers).filter((name) => mustBeSigned(name, names))
  if (unsigned.length > 0 || !names.includes('host')) {
    return refuse(403, 'AccessDenied', 'There were headers present which were not signed')
  }
  if (signature !== (await signAgain(request, names, { settings, signingDate }))) {
    const message = 'The request signature we calculated does not match the signature you provided.'
    return refuse(403, 'SignatureDoesNotMatch', message)
  }
  return undefined
}

const mustBeSigned = (name: string, signed: readonly string[]) =>
  (name.startsWith('x-amz-') || name === 'content-md5') && !signed.includes(name)

function readTime(text: unknown): Date {
  const [, year, month, day, hour, minute, second] = timeForm.exec(String(text)) ?? []
  return new Date(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`)
}

async function signAgain(
  { method, url, headers }: DoubleRequest,
  names: readonly string[],
  { settings, signingDate }: { settings: Signer; signingDate: Date },
) {
  const { accessKeyId, secretAccessKey, region } = settings
  const credentials = { accessKeyId, secretAccessKey }
  const signer = new SignatureV4({
    service: 's3',
    region,
    credentials,
    sha256: Sha256,
    uriEscapePath: false,
  })
  const signed = Object.fromEntries(names.map((name) => [name, String(headers[name])]))
  const options = { signingDate, signableHeaders: new Set(names) }
  const path = encodePath(url.pathname)
  const request = { method, protocol: 'https:', hostname: url.hostname, path, headers: signed }
  const { headers: again } = await signer.sign(request, options)
  return /Signature=([0-9a-f]{64})/.exec(again['authorization'] ?? '')?.[1]
}

/** A store decodes a path and encodes it anew, so a client that encodes otherwise has signed another path. */
const encodePath = (path: string) =>
  [...Buffer.from(decodeURIComponent(path))]
    .map((byte) => ({ byte, sign: String.fromCharCode(byte) }))
    .map(({ byte, sign }) =>
      /[\w.~/-]/.test(sign) ? sign : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`,
    )
    .join('')

/** The hash that the signer wants to be given. */
class Sha256 {
  #hash: Hash | Hmac
  readonly #secret: string | ArrayBuffer | ArrayBufferView | undefined

  constructor(secret?: string | ArrayBuffer | ArrayBufferView) {
    this.#secret = secret
    this.#hash = this.#start()
  }
  #start() {
    const secret = this.#secret
    if (secret === undefined) return createHash('sha256')
    const key =
      typeof secret === 'string'
        ? secret
        : ArrayBuffer.isView(secret)
          ? new Uint8Array(secret.buffer, secret.byteOffset, secret.byteLength)
          : new Uint8Array(secret)
    return createHmac('sha256', key)
  }
  update(data: Uint8Array | string) {
    this.#hash.update(data)
  }
  digest() {
    return Promise.resolve(new Uint8Array(this.#hash.digest()))
  }
  reset() {
    this.#hash = this.#start()
  }
}
