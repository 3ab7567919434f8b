import { type GatewayInForce, isRestrictive } from '#gateway-config/compile-gateway.ts'
import type { GuardrailInForce } from '#gateway-config/guardrails/open-guardrails.ts'
import type { CompiledPolicy } from '#policies/compile.ts'

/**
 * The policies in force in one organization. Frozen: a request keeps the snapshot it was pinned to,
 * whatever is published meanwhile, and a change makes a new snapshot.
 */
export type Snapshot = Readonly<{
  organizationId: string
  epoch: number
  policies: readonly CompiledPolicy[]
  /** The configuration of the policy gateway; null: none was saved. */
  gateway: GatewayInForce | null
  /** Those that are enabled, the oldest first. */
  guardrails: readonly GuardrailInForce[]
}>

/** What is in force beside policies. */
type Beside = { gateway?: GatewayInForce | null; guardrails?: readonly GuardrailInForce[] }

export const makeSnapshot = (
  organizationId: string,
  epoch: number,
  policies: readonly CompiledPolicy[],
  { gateway = null, guardrails = [] }: Beside = {},
): Snapshot =>
  Object.freeze({
    organizationId,
    epoch,
    policies: Object.freeze([...policies]),
    gateway,
    guardrails: Object.freeze([...guardrails]),
  })

/** Policies that no project is attached to never meet traffic, so they enforce nothing. */
const isEnforcing = ({ content }: CompiledPolicy) =>
  content.mode === 'enforcing' && content.scope !== 'unattached'

/** Without a judge calls in its scope are refused. */
export const enforcesByJudge = (policy: CompiledPolicy) =>
  isEnforcing(policy) && !('problem' in policy.rule) && policy.rule.needs.judge

export const hasEnforcing = ({ policies, gateway, guardrails }: Snapshot) =>
  policies.some(isEnforcing) ||
  (gateway !== null && isRestrictive(gateway.config)) ||
  guardrails.some(({ mode }) => mode === 'enforcing')

/** The enforcing policies that cannot be evaluated here: calls in their scope are refused. */
export const findUnenforceable = ({ policies }: Snapshot) =>
  policies.filter((policy) => isEnforcing(policy) && 'problem' in policy.rule)

/** The enforcing guardrails that cannot be asked from here: calls in their scope are refused. */
export const findUnaskable = ({ guardrails }: Snapshot) =>
  guardrails.filter(({ mode, asked }) => mode === 'enforcing' && asked === null)

export const countUnenforceable = (snapshot: Snapshot) =>
  findUnenforceable(snapshot).length + findUnaskable(snapshot).length
