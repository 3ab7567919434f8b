import { threadEntry } from '#platform/assets.ts'
import type { Db } from '#platform/database.ts'
import { finish } from '#platform/steps/steps.ts'
import { createThreadPool } from '#platform/thread-pool.ts'
import { compilePolicy } from '#policies/compile.ts'
import type { RuleCheck } from '#policies/rule.ts'
import { createRuleCheck } from '#policies/rules/check-rule.ts'
import { createPatternCosts } from '#policies/rules/pattern-costs.ts'
import {
  type CurrentVersion,
  findMigrationTime,
  readCurrentVersions,
} from '#policies/versions/version-store.ts'
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

/** Since this migration `text` is all that a caller sends, and no longer only what users and tools say. */
const wideText = '0025_history_direction.sql'

/** All are counted, and at most this many are listed. */
const listedMax = 1000

/**
 * Lists the versions that are in force, or would be after a pause, and that this release could not enforce or would not
 * accept any more: earlier releases did not measure what patterns cost. Also those that see more than when they were published.
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
    return await checkAll(db, createRuleCheck({ costs: createPatternCosts(threads) }))
  } finally {
    await threads.close()
  }
}

async function checkAll(db: Db, checkRule: RuleCheck): Promise<CommandOutput> {
  const engine = loadPatternEngine()
  const listed: Finding[] = []
  const wider: Finding[] = []
  const counts = { checked: 0, failing: 0, enforcing: 0, wider: 0 }
  const wideSince = await findMigrationTime(db, wideText)
  for await (const page of readCurrentVersions(db)) {
    for (const current of page) {
      counts.checked++
      const { problem, readsText } = await examine(current, checkRule, engine)
      const isWider = readsText && (wideSince === null || current.publishedAt < wideSince)
      if (isWider && counts.wider++ < listedMax) wider.push(present(current, seesMore))
      if (problem === null) continue
      counts.failing++
      // One without a scope meets no calls.
      if (current.mode === 'enforcing' && current.scope !== 'unattached') counts.enforcing++
      if (listed.length < listedMax) listed.push(present(current, problem))
    }
  }
  const lines = [...listed, ...wider].map((finding) => Object.values(finding).join('  '))
  const hasMore = Math.max(counts.failing, counts.wider) > listedMax
  const more = hasMore ? [`Only the first ${listedMax} of a kind are shown.`] : []
  const sum = `${counts.checked} versions checked; ${counts.failing} cannot be evaluated or take too long, ${counts.enforcing} of them enforcing; ${counts.wider} see more of requests than when they were published.`
  return {
    result: { ...counts, data: listed, wider_data: wider, has_more: hasMore },
    text: `${[...lines, ...more, sum].join('\n')}\n`,
    exitCode: counts.enforcing > 0 ? 1 : 0,
  }
}

const seesMore =
  'text in requests now includes instructions, tools and documents; user_text is what users and tools say'

/** Why a version cannot be enforced, or null; and whether it reads `text` in requests. */
async function examine(current: CurrentVersion, checkRule: RuleCheck, engine: PatternEngine) {
  const failing = (problem: string) => ({ problem, readsText: false })
  try {
    // First what compiling would cost: a rule that no release has measured may take very long.
    const { problem: refusal } = await checkRule(current.rule, current.organizationId)
    if (refusal !== null) return failing(`the rule ${refusal}`)
    const { rule } = finish(compilePolicy(current, engine))
    if ('problem' in rule) return failing(`the rule ${rule.problem}`)
    return { problem: null, readsText: current.direction !== 'response' && rule.texts.has('text') }
  } catch (error) {
    return failing(error instanceof Error ? error.message : String(error))
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
