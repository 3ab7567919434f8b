import type { CompiledRule } from './rule-program.ts'

/** A rule of a policy that is in force. */
export type SetRule = {
  readonly policyId: string
  readonly policyName: string
  readonly version: number
  readonly mode: 'monitoring' | 'enforcing'
  /** Basis points from which the rule matches. */
  readonly threshold: number
  readonly rule: CompiledRule
}
