import { threadEntry } from '#platform/assets.ts'
import type { Db } from '#platform/database.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import { compilePolicy } from '#policies/compile.ts'
import type { RuleCheck } from '#policies/rule.ts'
import { createRuleCheck } from '#policies/rules/check-rule.ts'
import { type CurrentVersion, readCurrentVersions } from '#policies/versions/version-store.ts'
import { loadPatternEngine, type PatternEngine } from '#text/pattern-engine.ts'

import type { CommandOutput, OperatorDeps } from './command.ts'

type Finding = {
  organization_id: string
  policy_id: string
  version: number
  state: string
  mode: string
  problem: string
}

/** All are counted, and so many listed. */
const listedMax = 1000

/**
 * Lists the versions that are in force, or would be after a pause, and that this release could not enforce or would not
 * accept any more: earlier releases did not measure what patterns cost.
 */
export async function checkPolicies({ db }: OperatorDeps): Promise<CommandOutput> {
  const threads = createThreadPool({
    entry: threadEntry,
    threadsMax: 1,
    waitingMax: 1,
    waitingTotalMax: 1,
    graceMs: 0,
  })
  try {
    return await checkAll(db, createRuleCheck({ threads }))
  } finally {
    await threads.close()
  }
}

async function checkAll(db: Db, checkRule: RuleCheck): Promise<CommandOutput> {
  const engine = loadPatternEngine()
  const listed: Finding[] = []
  const counts = { checked: 0, failing: 0, enforcing: 0 }
  for await (const page of readCurrentVersions(db)) {
    for (const current of page) {
      counts.checked++
      const problem = await findProblem(current, checkRule, engine)
      if (problem === null) continue
      counts.failing++
      // One without a scope meets no calls.
      if (current.mode === 'enforcing' && current.scope !== 'unattached') counts.enforcing++
      if (listed.length < listedMax) listed.push(present(current, problem))
    }
  }
  const lines = listed.map((finding) => Object.values(finding).join('  '))
  const more = counts.failing > listedMax ? [`Only the first ${listedMax} are shown.`] : []
  const sum = `${counts.checked} versions checked; ${counts.failing} cannot be evaluated or take too long, ${counts.enforcing} of them enforcing.`
  return {
    result: { ...counts, data: listed, has_more: counts.failing > listedMax },
    text: `${[...lines, ...more, sum].join('\n')}\n`,
    exitCode: counts.enforcing > 0 ? 1 : 0,
  }
}

async function findProblem(
  current: CurrentVersion,
  checkRule: RuleCheck,
  engine: PatternEngine,
): Promise<string | null> {
  try {
    // First what compiling would cost: a rule that no release has measured may take very long.
    const refusal = await checkRule(current.rule, current.organizationId)
    if (refusal !== null) return `the rule ${refusal}`
    const { rule } = compilePolicy(current, engine)
    return 'problem' in rule ? `the rule ${rule.problem}` : null
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}

const present = (current: CurrentVersion, problem: string): Finding => ({
  organization_id: current.organizationId,
  policy_id: current.policyId,
  version: current.version,
  state: current.state,
  mode: current.mode,
  problem,
})
