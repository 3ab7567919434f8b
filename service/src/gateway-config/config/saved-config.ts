import { createHash, randomBytes } from 'node:crypto'

import { defaultGatewayConfig, type GatewayConfig } from '@gatehouse/contract/policy-gateway/config'
import type { GatewayState } from '@gatehouse/contract/policy-gateway/gateway'

import type { EventHeader } from '#audit/event.ts'

/** The configuration that an organization has saved last. */
export type SavedConfig = {
  readonly revision: number
  /** The revision at which anything but the rollout last changed. */
  readonly samplingRevision: number
  readonly samplingKey: Buffer
  readonly config: GatewayConfig
  /** Until when it is not enforced, because it refused too much. */
  readonly rolledBackUntil: Date | null
  /** Null: no set does. */
  readonly managedBy: string | null
  readonly createdAt: Date
  readonly updatedAt: Date
}

/** The next revision; `before` itself if nothing would change. Time is given to the second, as it is shown. */
export function revise(
  before: SavedConfig | undefined,
  config: GatewayConfig,
  now: Date,
): SavedConfig {
  if (before && isEqual(before.config, config)) return before
  const revision = (before?.revision ?? 0) + 1
  const keepsSample =
    before !== undefined && isEqual(withoutRollout(before), withoutRollout({ config }))
  return {
    revision,
    samplingRevision: keepsSample ? before.samplingRevision : revision,
    samplingKey: before?.samplingKey ?? randomBytes(32),
    config,
    // Other rules get their chance at once, and who switches rollbacks off ends the one that is active.
    rolledBackUntil:
      keepsSample && config.rollout.rollback_on_spike ? before.rolledBackUntil : null,
    managedBy: before?.managedBy ?? null,
    createdAt: before?.createdAt ?? now,
    updatedAt: now,
  }
}

function withoutRollout({ config: { rollout: _, ...others } }: { config: GatewayConfig }) {
  return others
}

/** Configurations are complete, and the schema puts their members in one order. */
const isEqual = (one: object, other: object) => JSON.stringify(one) === JSON.stringify(other)

export const hashConfig = (config: GatewayConfig): Buffer =>
  createHash('sha256').update(JSON.stringify(config)).digest()

export function present(saved: SavedConfig | undefined): GatewayState {
  if (!saved) {
    const never = { managed_by: null, created_at: null, updated_at: null }
    return { config: defaultGatewayConfig(), revision: 0, ...never }
  }
  const { config, revision, managedBy, createdAt, updatedAt } = saved
  return {
    config,
    revision,
    managed_by: managedBy,
    created_at: toSecondText(createdAt),
    updated_at: toSecondText(updatedAt),
  }
}

/** The configuration in audit events. */
export const presentConfig = (saved: SavedConfig) => ({
  id: saved.config.policy_id,
  object: 'policy_gateway.config',
  ...present(saved),
  ...(saved.rolledBackUntil && { rolled_back_until: saved.rolledBackUntil.toISOString() }),
})

/** What audit events can be filtered by. */
export const configFactsOf = ({ revision, config }: SavedConfig): EventHeader => ({
  policy_id: config.policy_id,
  policy_name: config.name,
  revision,
  data_classification: config.org_controls.data_classification,
})

/** RFC 3339 in UTC, to the second. */
export const toSecondText = (moment: Date) => `${moment.toISOString().slice(0, 19)}Z`
