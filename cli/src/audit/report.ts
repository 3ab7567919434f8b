import { aligned, withoutControls } from '../output/text-columns.ts'
import { type Fault, sentenceOf } from './fault.ts'
import { fingerprintOf, type Keys } from './keys.ts'
import type { Progress } from './verify-records.ts'

export type Verified = {
  progress: Progress
  keys: Keys
  areKeysTrusted: boolean
  before: { first: number; last: number } | null
  duplicates: number
  digests: number
}

/** What was verified and what was not, for a person. */
export function textOf(verified: Verified): string {
  const lines = [
    headlineOf(verified),
    '',
    ...aligned(rowsOf(verified)).map((line) => `  ${line}`),
    ...(verified.areKeysTrusted ? [] : ['', ...selfSigned]),
  ]
  return `${lines.map(withoutControls).join('\n')}\n`
}

/** Nothing is called verified that only the bundle itself vouches for. */
function headlineOf({ progress, areKeysTrusted }: Verified): string {
  const { organizationId, from, to } = progress
  if (from === to)
    return `Nothing to verify after the checkpoint of size ${to} of organization ${organizationId}.`
  const records = `records ${from + 1} to ${to} of organization ${organizationId}`
  return areKeysTrusted
    ? `Verified: ${records} are complete, unchanged and in order.`
    : `Consistent: ${records} match the checkpoints of the bundle.`
}

const selfSigned = [
  'The keys come from the bundle itself. This shows only that the bundle is consistent: whoever makes up a bundle can sign it',
  'with keys of their own. Compare the fingerprints with ones that you obtained elsewhere, or give the keys that you trust',
  'with --keys.',
]

function rowsOf({ progress, keys, before, duplicates, digests }: Verified): string[][] {
  const { from, to, read, checkpoints, firstAt, lastAt, erased, usedKeys } = progress
  return [
    ['records', String(to - from)],
    ...(firstAt !== null && lastAt !== null ? [['created', `${firstAt} to ${lastAt}`]] : []),
    ['checkpoints', `${checkpoints}, the last at ${progress.lastCheckpointAt}`],
    ['erased payloads', String(erased)],
    ...usedOf(keys, usedKeys).map((key) => [`key ${key.id}`, `SHA-256 ${fingerprintOf(key)}`]),
    ...(duplicates > 0 ? [['delivered twice', String(duplicates)]] : []),
    ...(digests > 0 ? [['digests', String(digests)]] : []),
    ...(before
      ? [
          [
            'not covered',
            `records ${before.first} to ${before.last}: no checkpoint before them is here`,
          ],
        ]
      : []),
    ...(read > to
      ? [['not covered yet', `records ${to + 1} to ${read}: the next checkpoint will cover them`]]
      : []),
  ]
}

const usedOf = (keys: Keys, used: ReadonlySet<number>) =>
  [...keys.values()].filter(({ id }) => used.has(id)).toSorted((one, other) => one.id - other.id)

export function jsonOf({ progress, keys, areKeysTrusted, before, duplicates, digests }: Verified) {
  const { from, to, read } = progress
  return {
    verified: true,
    org_id: progress.organizationId,
    from,
    to,
    records: to - from,
    checkpoints: progress.checkpoints,
    first_created_at: progress.firstAt,
    last_created_at: progress.lastAt,
    last_checkpoint_at: progress.lastCheckpointAt,
    erased_payloads: progress.erased,
    duplicates,
    digests,
    keys: usedOf(keys, progress.usedKeys).map((key) => ({
      id: key.id,
      fingerprint: fingerprintOf(key),
    })),
    keys_are_trusted: areKeysTrusted,
    not_covered_before: before,
    not_covered_after: read > to ? { first: to + 1, last: read } : null,
  }
}

export const faultText = (fault: Fault) => withoutControls(sentenceOf(fault))

export function faultJson(fault: Fault) {
  const { subject, place } = fault
  return {
    verified: false,
    message: sentenceOf(fault),
    first_bad: {
      kind: subject.kind,
      org_seq: subject.seq,
      // Set where only a range is known.
      last_org_seq: subject.last ?? null,
      event_id: subject.eventId ?? null,
      file: place?.file ?? null,
      line: place?.line || null,
    },
  }
}
