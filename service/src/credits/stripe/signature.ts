import { createHmac, timingSafeEqual } from 'node:crypto'

type SignedBody = { header: unknown; body: Buffer }
type Check = { secrets: readonly string[]; now: Date }

const toleranceSeconds = 300
const headerMaxLength = 2000
const signaturesMax = 10

/**
 * What is wrong with the signature; undefined if Stripe signed exactly these bytes, within the tolerance, with
 * one of the secrets. The texts say nothing that would help to forge one.
 */
export function findSignatureFault({ header, body }: SignedBody, check: Check): string | undefined {
  const parts = readHeader(header)
  if (!parts) return malformed
  const isSigned = check.secrets
    .map((secret) => createHmac('sha256', secret).update(`${parts.at}.`).update(body).digest())
    .some((expected) => parts.signatures.some((given) => timingSafeEqual(given, expected)))
  if (!isSigned) return 'No signature in the Stripe-Signature header matches the body.'
  const ageSeconds = Math.abs(check.now.getTime() / 1000 - Number(parts.at))
  if (ageSeconds <= toleranceSeconds) return undefined
  return `The signature's time is off by more than ${toleranceSeconds} seconds. Check the clocks.`
}

const malformed = 'The Stripe-Signature header is missing or malformed.'

/** The check that needs no body. */
export const findHeaderFault = (header: unknown): string | undefined =>
  readHeader(header) ? undefined : malformed

/** `t=1492774577,v1=5257a8...,v1=...`; other schemes are ignored. */
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
