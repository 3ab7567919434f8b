import { createHmac } from 'node:crypto'

type Draw = {
  /** The organization's own. */
  key: Buffer
  policyId: string
  /** The revision at which anything but the rollout last changed. */
  samplingRevision: number
  /** The policy user, else the caller. */
  subject: string
}

/** The bucket of a subject, 0 to 99.99. It stays the same until something else than the rollout is changed. */
export function bucketOf({ key, policyId, samplingRevision, subject }: Draw): number {
  const drawn = createHmac('sha256', key)
    .update(`${policyId}\0${samplingRevision}\0${subject}`)
    .digest()
  return (drawn.readUInt32BE(0) % 10_000) / 100
}
