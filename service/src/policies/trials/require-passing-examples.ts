import { setImmediate as nextTurn } from 'node:timers/promises'

import type { FailingExample } from '@gatehouse/contract/error-body'
import type { PolicyExample } from '@gatehouse/contract/policy-evaluation'

import type { Db } from '#platform/database.ts'
import { within } from '#platform/deadline.ts'
import { startBackgroundWork } from '#platform/steps/background-work.ts'
import { compileEvaluableInSteps } from '#policies/compile.ts'
import { contentOf, type Policy } from '#policies/policy.ts'
import {
  evaluationTooSlow,
  examplesFailing,
  examplesNotEvaluable,
  lacksJudge,
  policyNotEvaluable,
  ruleNotPublishable,
} from '#policies/refusals.ts'
import type { CompiledRule } from '#policies/rules/rule-program.ts'

import { findExamples } from './example-store.ts'
import { createTrial, type Trial, type TrialDeps } from './trial.ts'

type Deps = TrialDeps & { db: Db; hasJudge(): boolean }

export const examplesMaxMs = 30_000
const failingMax = 20

/**
 * Refuses a draft that could not be enforced although it is to be, and one whose examples do not come out as they
 * should. Only the second can be forced.
 */
export async function requirePassingExamples(
  deps: Deps,
  organizationId: string,
  policy: Policy,
  isForced: boolean,
) {
  const { db, engine, hasJudge } = deps
  const rule = await startBackgroundWork().run(compileEvaluableInSteps(policy.rule, engine))
  const isBroken = 'problem' in rule
  if (isBroken && policy.mode === 'enforcing') throw ruleNotPublishable(rule.problem)
  const isJudged = !isBroken && rule.needs.judge
  if (isJudged && policy.mode === 'enforcing' && !hasJudge()) throw ruleNotPublishable(lacksJudge)
  if (isForced) return
  const examples = await findExamples(db, { organizationId, policyId: policy.id })
  if (examples.length === 0) return
  if (isBroken) throw examplesNotEvaluable(rule.problem)
  if (isJudged && !hasJudge()) throw examplesNotEvaluable(lacksJudge)
  const failing = await within(examplesMaxMs, evaluationTooSlow, async (signal) => {
    const tried = { ...contentOf(policy), policyId: policy.id, version: 0 }
    const trial = await startBackgroundWork(signal).run(
      createTrial(tried, rule, deps, { owner: organizationId, signal }),
    )
    return findFailing(trial, examples, signal)
  })
  if (failing.length > 0) throw examplesFailing(failing)
}

/** What a draft makes of all its examples. */
export async function tryExamples(
  deps: Deps,
  organizationId: string,
  policy: Policy,
  rule: CompiledRule,
) {
  const examples = await findExamples(deps.db, { organizationId, policyId: policy.id })
  if (examples.length > 0 && rule.needs.judge && !deps.hasJudge()) {
    throw policyNotEvaluable('the draft', lacksJudge)
  }
  return within(examplesMaxMs, evaluationTooSlow, async (signal) => {
    const tried = { ...contentOf(policy), policyId: policy.id, version: 0 }
    const trial = await startBackgroundWork(signal).run(
      createTrial(tried, rule, deps, { owner: organizationId, signal }),
    )
    const results = []
    for (const [index, example] of examples.entries()) {
      signal.throwIfAborted()
      const { score, isMatch } = await trial.judge(example)
      results.push({ index, expect: example.expect, score, matched: isMatch })
      await nextTurn()
    }
    return results
  })
}

/** The first 20. */
async function findFailing(
  trial: Pick<Trial, 'judge'>,
  examples: readonly PolicyExample[],
  signal: AbortSignal,
): Promise<FailingExample[]> {
  const failing: FailingExample[] = []
  for (const [index, example] of examples.entries()) {
    signal.throwIfAborted()
    const { score, isMatch } = await trial.judge(example)
    const { expect } = example
    if (isMatch !== (expect === 'must_match')) failing.push({ index, expect, score })
    if (failing.length === failingMax) return failing
    await nextTurn()
  }
  return failing
}
