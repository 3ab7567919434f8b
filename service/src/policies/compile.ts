import type { PolicyContent } from '@gatehouse/contract/policy'

import { finish, type Steps } from '#platform/steps/steps.ts'
import type { PatternEngine } from '#text/pattern-engine.ts'

import { contentOf, hashContent } from './policy.ts'
import { type CompiledRule, compileRuleInSteps } from './rules/rule-program.ts'

/** Why a rule cannot be evaluated by this process: the end of a sentence that begins with the name of the rule. */
type Unevaluable = { readonly problem: string }

/** One version of a policy, ready to be evaluated. Frozen, because all requests share it. */
export type CompiledPolicy = Readonly<{
  policyId: string
  /** Not versioned: the name that the policy has now. */
  name: string
  version: number
  sha256: string
  content: Readonly<PolicyContent>
  /** What its patterns cost, in microseconds and in the order of the rule; null where that was not kept. */
  patternCosts?: readonly number[] | null
  rule: CompiledRule | Unevaluable
}>

export type PolicySource = PolicyContent & {
  policyId: string
  name: string
  version: number
  sha256: string
  patternCosts?: readonly number[] | null | undefined
}

/**
 * Compiles a published version, one pattern in a step; throws if its content does not have the published hash. A rule that cannot
 * be evaluated here does not throw: it fails alone, and the other policies of its organization stay in force.
 */
export function* compilePolicy(source: PolicySource, engine: PatternEngine): Steps<CompiledPolicy> {
  const { policyId, name, version, sha256 } = source
  const content = contentOf(source)
  if (hashContent(content).toString('hex') !== sha256) {
    throw new Error(
      `version ${version} of policy ${policyId} does not have the content that was published`,
    )
  }
  Object.freeze(content.project_ids)
  const rule = yield* compileEvaluableInSteps(content.rule, engine)
  const { patternCosts = null } = source
  if (!('problem' in rule)) learnCosts(rule, patternCosts, engine)
  return Object.freeze({
    policyId,
    name,
    version,
    sha256,
    content: Object.freeze(content),
    patternCosts,
    rule,
  })
}

/** Where another release reads other patterns in the rule, the costs cannot be assigned to them. */
function learnCosts(
  { patternOffsets }: CompiledRule,
  costs: readonly number[] | null,
  { elsewhere }: PatternEngine,
) {
  if (costs?.length !== patternOffsets.size) return
  for (const [index, pattern] of [...patternOffsets.keys()].entries()) {
    elsewhere?.learnCost(pattern, (costs[index] ?? 0) / 1000)
  }
}

/** Compiles a rule that this process can evaluate; otherwise says what is missing. */
export const compileEvaluable = (rule: string, engine: PatternEngine): CompiledRule | Unevaluable =>
  finish(compileEvaluableInSteps(rule, engine))

/** The same in steps, each of which compiles one pattern. */
export function* compileEvaluableInSteps(
  rule: string,
  engine: PatternEngine,
): Steps<CompiledRule | Unevaluable> {
  const compiled = yield* compileRuleInSteps(rule, engine)
  return typeof compiled === 'string' ? { problem: compiled } : compiled
}
