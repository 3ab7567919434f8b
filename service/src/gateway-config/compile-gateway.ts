import { type GatewayConfig, GivenGatewayConfig } from '@gatehouse/contract/policy-gateway/config'

import type { Steps } from '#platform/steps/steps.ts'

import { buildTermLists, type TermLists } from './decide/term-lists.ts'

/** A saved configuration as it is stored, in the database and in the copy on disk. */
export type StoredGateway = {
  readonly revision: number
  readonly sha256: string
  readonly samplingRevision: number
  /** In hexadecimal digits. */
  readonly samplingKey: string
  readonly config: unknown
  /** Until when it is not enforced, because it refused too much. */
  readonly rolledBackUntil: Date | null
}

/** A configuration that is in force. */
export type GatewayInForce = StoredGateway & {
  readonly config: GatewayConfig
  readonly terms: TermLists
}

/** What is kept of a configuration in force. */
export const storedOf = ({ terms: _, ...stored }: GatewayInForce): StoredGateway => stored

/** Compares hashes too: a database that was restored from a dump can reach the same revision again. */
export const isSameGateway = (one: StoredGateway | null, other: StoredGateway | null): boolean =>
  one?.revision === other?.revision &&
  one?.sha256 === other?.sha256 &&
  one?.samplingRevision === other?.samplingRevision &&
  one?.samplingKey === other?.samplingKey &&
  one?.rolledBackUntil?.getTime() === other?.rolledBackUntil?.getTime()

/** Throws for a configuration that this release does not understand: a part of it would protect less than it claims. */
export function* compileGateway(stored: StoredGateway): Steps<GatewayInForce> {
  const config = GivenGatewayConfig.parse(stored.config)
  return Object.freeze({ ...stored, config, terms: yield* buildTermLists(config.rules) })
}

/** Whether a quota limits anything. */
export const isLimited = ({ requests, tokens }: { requests: number; tokens: number }): boolean =>
  requests > 0 || tokens > 0

/** Whether anything but the always-blocked categories can be refused by it. */
export function isRestrictive({ rules, org_controls }: GatewayConfig): boolean {
  const { user_quotas, user_quota, project_quota, project_keys, monthly_budget } = org_controls
  return (
    [rules.allowlist, rules.denylist, rules.flagged_categories].some(({ length }) => length > 0) ||
    rules.redact ||
    rules.unscored_parts === 'refuse' ||
    project_keys ||
    (user_quotas && isLimited(user_quota)) ||
    isLimited(project_quota) ||
    monthly_budget?.hard_stop === true
  )
}
