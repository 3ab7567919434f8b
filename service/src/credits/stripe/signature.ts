import { createHmac, timingSafeEqual } from 'node:crypto'

type Signed = { header: unknown; body: Buffer }
type Check = { secrets: readonly string[]; now: Date }

const toleranceSeconds = 300
const headerMaxLength = 2000
const signaturesMax = 10

/**
 * What is wrong with the signature; undefined when Stripe signed exactly these bytes, lately, with one of
 * the secrets. Whoever cannot sign learns no more than that.
 */
export function faultOfSignature({ header, body }: Signed, check: Check): string | undefined {
  const parts = readHeader(header)
  if (!parts) return malformed
  const isSigned = check.secrets
    .map((secret) => createHmac('sha256', secret).update(`${parts.at}.`).update(body).digest())
    .some((wanted) => parts.signatures.some((given) => timingSafeEqual(given, wanted)))
  if (!isSigned) return 'No signature of the header Stripe-Signature fits the body.'
  const ageSeconds = Math.abs(check.now.getTime() / 1000 - Number(parts.at))
  if (ageSeconds <= toleranceSeconds) return undefined
  return `The signature is not of the last ${toleranceSeconds} seconds. Is the clock right?`
}

const malformed = 'The header Stripe-Signature is missing or malformed.'

/** What can be said before there is a body. */
export const faultOfHeader = (header: unknown): string | undefined =>
  readHeader(header) ? undefined : malformed

/** `t=1492774577,v1=5257a8...,v1=...`; other schemes are passed over. */
function readHeader(header: unknown): { at: string; signatures: Buffer[] } | undefined {
  if (typeof header !== 'string' || header.length > headerMaxLength) return undefined
  const parts = header.split(',').map((part) => part.trim())
  const values = (scheme: string) =>
    parts
      .filter((part) => part.startsWith(`${scheme}=`))
      .map((part) => part.slice(scheme.length + 1))
  const [at = '', ...others] = values('t')
  const signatures = values('v1').filter((value) => /^[0-9a-f]{64}$/i.test(value))
  const isWhole = /^\d{1,12}$/.test(at) && others.length === 0
  if (!isWhole || signatures.length === 0 || signatures.length > signaturesMax) return undefined
  return { at, signatures: signatures.map((value) => Buffer.from(value, 'hex')) }
}
