import type { DestinationAnswer, DeliveryOutcome } from '#exports/destinations/destination.ts'
import { oneLine } from '#exports/destinations/one-line.ts'
import { outcomeOfAnswer } from '#exports/destinations/outcome.ts'

/** Codes with a status of 4xx for what may go well the next time. */
const passing = new Set([
  'RequestTimeout',
  'IncompleteBody',
  'BadDigest',
  'XAmzContentSHA256Mismatch',
  'OperationAborted',
])

const hints = new Map([
  ['SignatureDoesNotMatch', 'The secret access key does not belong to the access key id.'],
  ['InvalidAccessKeyId', 'The store does not know the access key id.'],
  ['AccessDenied', 'The access key may not write to the bucket (s3:PutObject, and its KMS key).'],
  ['NoSuchBucket', 'The bucket does not exist.'],
  ['PermanentRedirect', 'The bucket is in another region.'],
  ['AuthorizationHeaderMalformed', 'The bucket is in another region.'],
  ['RequestTimeTooSkewed', 'The clocks of this service and of the store differ too much.'],
])

/**
 * What an answer of a store that is no success means. A store does not read what it keeps, so a refusal is about the
 * configuration unless the object is too large.
 */
export function outcomeOfStore(
  answer: DestinationAnswer,
  clean: (text: string) => string,
): DeliveryOutcome {
  const { status } = answer
  const { code, message, region } = readStoreError(answer)
  const text = [code, message].filter(Boolean).join(': ')
  const isTooLarge = status === 413 || code === 'EntityTooLarge'
  if (status >= 500 || status === 408 || status === 429) return outcomeOfAnswer(answer, clean(text))
  const hint = hints.get(code) ?? (status === 301 ? hints.get('PermanentRedirect') : undefined)
  const place = region === '' ? '' : ` It says ${region}.`
  const error = `The store answered ${status}. ${hint ?? ''}${place} ${text}`
  const kind = isTooLarge ? 'refused' : passing.has(code) ? 'failed' : 'misconfigured'
  return { kind, error: oneLine(clean(error), 300) }
}

/** Stores answer with a small XML document, of which these three members are of interest. */
function readStoreError({ headers, body }: DestinationAnswer) {
  const xml = body.toString()
  const read = (name: string) =>
    new RegExp(`<${name}>([^<]{0,1000})</${name}>`).exec(xml)?.[1]?.trim() ?? ''
  const header = headers['x-amz-bucket-region']
  const region = read('Region') || (typeof header === 'string' ? header : '')
  return { code: read('Code'), message: read('Message'), region }
}
