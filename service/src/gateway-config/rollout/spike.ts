import type { GatewayConfig } from '@gatehouse/contract/policy-gateway/config'

import type { Decision } from '#gateway-config/decide/decide.ts'

/** When a configuration is rolled back, and for how long. */
type RollbackSettings = {
  readonly threshold: number
  readonly minRequests: number
  readonly windowMinutes: number
  readonly cooldownMinutes: number
  readonly decisions: readonly Decision[]
}

export const rollbackSettingsOf = (rollout: GatewayConfig['rollout']): RollbackSettings => ({
  threshold: rollout.rollback_threshold ?? 0.25,
  minRequests: rollout.rollback_min_requests ?? 20,
  windowMinutes: rollout.rollback_window_minutes ?? 15,
  cooldownMinutes: rollout.rollback_cooldown_minutes ?? 30,
  decisions: rollout.rollback_decisions ?? ['refuse', 'escalate'],
})

/** How often each decision was made. */
export type DecisionCounts = Readonly<Partial<Record<Decision, number>>>

/** `hits` are the requests with one of the decisions that count, among all `requests`. */
export type Spike = { readonly requests: number; readonly hits: number; readonly share: number }

/** Whether the enforced requests of a window are reason to roll back: the numbers, or null if not. */
export function findSpike(settings: RollbackSettings, counts: DecisionCounts): Spike | null {
  const requests = sum(Object.values(counts))
  const hits = sum([...new Set(settings.decisions)].map((decision) => counts[decision] ?? 0))
  const isSpike = requests >= settings.minRequests && hits >= settings.threshold * requests
  return isSpike && hits > 0 ? { requests, hits, share: hits / requests } : null
}

/** Credentials with calls in the window. */
export type CallerCounts = {
  readonly all: number
  /** Those whose calls say something about the rules. */
  readonly enforced: number
  /** Those of them that had one of the decisions that count. */
  readonly refused: number
}

/**
 * Whether a spike is that of more than half of the credentials. One alone could bring it about by what it sends, and takes the
 * configuration from everybody else; so it counts alone only where it is the only credential.
 */
export const isOfMany = ({ all, enforced, refused }: CallerCounts): boolean =>
  refused * 2 > enforced && (enforced > 1 || all === 1)

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0)

const minuteMs = 60_000

/** The minutes that count: the current one and as many before it as the window has. What was before a rollback is over. */
export function windowStart(windowMinutes: number, rolledBackUntil: Date | null, now: Date): Date {
  const startMs = now.getTime() - windowMinutes * minuteMs
  const sinceMs = Math.max(startMs, rolledBackUntil?.getTime() ?? 0)
  return new Date(Math.floor(sinceMs / minuteMs) * minuteMs)
}
