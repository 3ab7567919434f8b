import type { GatewayInForce } from '#gateway-config/compile-gateway.ts'
import type { Arm } from '#gateway-config/decide/arm.ts'
import { drawArm } from '#gateway-config/decide/draw-arm.ts'
import type { Pinned } from '#policies-in-force/in-force.ts'

import { type CallTarget, targetNames } from './call-target.ts'
import type { PolicySubject } from './policy-subject.ts'

export type DrawnCall = {
  readonly policies: Pinned
  readonly policySubject: PolicySubject
  readonly target: CallTarget
}

/** The arm of the rollout of the organization's configuration that a call belongs to. */
export function armOfCall(
  gateway: GatewayInForce,
  { policies, policySubject, target }: DrawnCall,
): Arm {
  const { subject, target: label } = policySubject
  const targets = [targetNames[target], ...(label === null ? [] : [label])]
  return drawArm(gateway, { subject, targets, isRolledBack: policies.isRolledBack })
}
