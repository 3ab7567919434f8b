import type { GatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import type { rolloutModes } from '@gatehouse/contract/policy-gateway/gateway'

type RolloutMode = (typeof rolloutModes)[number]
type Rollout = GatewayConfig['rollout']

/**
 * Which part of a rollout a call belongs to. `outside`: it is not in the sample. `rollback`: it would be enforced, if the
 * configuration had not refused too much.
 */
export type Arm = RolloutMode | 'outside'

const enforcedArms: readonly Arm[] = ['enforced', 'canary']

/** Whether what a configuration decides is applied there, and not only recorded. */
export const isEnforcedIn = (arm: Arm): boolean => enforcedArms.includes(arm)

/**
 * Whether all else of it is applied there: redaction, quotas, and how earlier answers and unreadable parts are treated. A rollback
 * ends refusals that were too many. What protects data and budgets is not their cause, and must not be lost with them.
 */
export const isProtectedIn = (arm: Arm): boolean => isEnforcedIn(arm) || arm === 'rollback'

type Sampled = {
  /** 0 to 99.99, by the subject of the call. */
  bucket: number
  /** What the call goes to: its endpoint, and its `X-Policy-Target` if it has one. */
  targets: readonly string[]
  isRolledBack: boolean
}

/** The arm of a call. The canary takes the lowest buckets and the shadow those above, so a larger share only adds subjects. */
export function armOf(rollout: Rollout, { isRolledBack, ...sampled }: Sampled): Arm {
  const arm = armInForce(rollout, sampled)
  return isRolledBack && isEnforcedIn(arm) ? 'rollback' : arm
}

function armInForce(rollout: Rollout, { bucket, targets }: Omit<Sampled, 'isRolledBack'>): Arm {
  if (!rollout.canary.enabled && !rollout.shadow.enabled) return 'enforced'
  const canary = shareOf(rollout.canary, targets)
  if (bucket < canary) return 'canary'
  return bucket < canary + shareOf(rollout.shadow, targets) ? 'shadow' : 'outside'
}

function shareOf({ enabled, sample_percent, targets }: Rollout['canary'], of: readonly string[]) {
  const isMeant = targets.length === 0 || targets.some((target) => of.includes(target))
  return enabled && isMeant ? sample_percent : 0
}

/** A configuration that refused too much refuses nothing for a while, and then does again by itself. */
export const isRolledBack = (until: Date | null, now: Date): boolean =>
  until !== null && now < until

/** A simulation has no subject: it says what those in the sample get. */
export function simulatedMode(rollout: Rollout, isRolledBack: boolean): RolloutMode {
  if (isRolledBack) return 'rollback'
  if (rollout.canary.enabled) return 'canary'
  return rollout.shadow.enabled ? 'shadow' : 'enforced'
}
