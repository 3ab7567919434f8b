import type { GatewayInForce } from '#gateway-config/compile-gateway.ts'

import { type Arm, armOf } from './arm.ts'
import { bucketOf } from './bucket.ts'

type Drawn = {
  /** The policy user, else the caller. */
  subject: string
  /** What the call goes to: its endpoint, and its `X-Policy-Target` if it has one. */
  targets: readonly string[]
  isRolledBack: boolean
}

/** The arm of a call. Its bucket is drawn only where a rollout is going on. */
export function drawArm(gateway: GatewayInForce, { subject, targets, isRolledBack }: Drawn): Arm {
  const { config, samplingKey, samplingRevision } = gateway
  const { rollout, policy_id } = config
  if (!rollout.canary.enabled && !rollout.shadow.enabled) {
    return armOf(rollout, { bucket: 0, targets, isRolledBack })
  }
  const key = Buffer.from(samplingKey, 'hex')
  const bucket = bucketOf({ key, policyId: policy_id, samplingRevision, subject })
  return armOf(rollout, { bucket, targets, isRolledBack })
}
