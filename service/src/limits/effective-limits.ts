import type { LimitOverrides, LimitSource } from '@gatehouse/contract/limits'

import type { Principal } from '#http/principal.ts'

import { type Metric, metricNames } from './limit-metrics.ts'
import type { LimitTable } from './limits-file.ts'
import { type Amounts, type Limits, type Scope, scopes } from './limits.ts'
import { tierOf } from './tiers.ts'

export type Limited = Pick<Principal, 'plan' | 'paidMicroUsd' | 'limitOverrides'>

/** The numbers of the tier, replaced where others were set for the organization, the project or the key. */
export function applyOverrides(limits: Limits, overrides: LimitOverrides): Limits {
  const applied = (scope: Scope): Amounts => {
    // Only known metrics: another release may have stored more.
    const numbers = metricNames.map((metric): [Metric, number] => [
      metric,
      overrides[scope]?.[metric] ?? limits[scope][metric],
    ])
    return Object.fromEntries(numbers) as Amounts
  }
  return Object.fromEntries(scopes.map((scope) => [scope, applied(scope)])) as Limits
}

/** Finds the limits of callers by the table in force. */
export function createLimitsOf(table: () => LimitTable) {
  // Overrides are one object for as long as their credential is cached. Limits are packed once per object.
  const applied = new WeakMap<LimitOverrides, { base: Limits; limits: Limits }>()

  return (caller: Limited): Limits => {
    const base = table().byTier[tierOf(caller)]
    const overrides = caller.limitOverrides
    if (!overrides) return base
    const known = applied.get(overrides)
    if (known?.base === base) return known.limits
    const limits = applyOverrides(base, overrides)
    applied.set(overrides, { base, limits })
    return limits
  }
}
export type LimitsOf = ReturnType<typeof createLimitsOf>

/** Where the number of one limit comes from. */
export function sourceOf(
  { file }: LimitTable,
  caller: Limited,
  scope: Scope,
  metric: Metric,
): LimitSource {
  if (caller.limitOverrides?.[scope]?.[metric] !== undefined) return 'override'
  const entry: Readonly<Partial<Record<Metric, number | undefined>>> =
    file[tierOf(caller)]?.[scope] ?? {}
  return entry[metric] === undefined ? 'tier' : 'file'
}
