import type { PolicyContent } from '@gatehouse/contract/policy'

import { within } from '#platform/deadline.ts'

import { contentOf, hashContent } from './policy.ts'
import type { RuleCheck } from './rule.ts'

/** One version of a policy, ready to be evaluated. Frozen, because all requests share it. */
export type CompiledPolicy = Readonly<{
  policyId: string
  version: number
  sha256: string
  content: Readonly<PolicyContent>
}>

type Source = PolicyContent & { policyId: string; version: number; sha256: string }

const compileMaxMs = 2000

/**
 * Verifies that the content has the published hash and that its rule is accepted; throws otherwise. Until
 * the policy engine exists, compiling checks only the form of a rule.
 */
export async function compilePolicy(source: Source, check: RuleCheck): Promise<CompiledPolicy> {
  const { policyId, version, sha256 } = source
  const name = `version ${version} of policy ${policyId}`
  const content = contentOf(source)
  if (hashContent(content).toString('hex') !== sha256) {
    throw new Error(`${name} does not have the content that was published`)
  }
  const tooSlow = () => new Error(`${name} took longer than ${compileMaxMs} ms to compile`)
  const problem = await within(compileMaxMs, tooSlow, () => check(content.rule))
  if (problem) throw new Error(`the rule of ${name} ${problem}`)
  Object.freeze(content.project_ids)
  return Object.freeze({ policyId, version, sha256, content: Object.freeze(content) })
}
