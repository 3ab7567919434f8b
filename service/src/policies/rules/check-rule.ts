import type { RuleCheck } from '#policies/rule.ts'
import type { PatternCost } from '#text/pattern-cost.ts'

import { placeComplaint } from './complaint.ts'
import { type PatternCosts, searchCostOf } from './pattern-costs.ts'
import { describeComplaint, readUncompiled } from './rule-program.ts'

type Deps = { costs: Pick<PatternCosts, 'measure'> }

/** For 8 KB of a text that is hard for the pattern. */
const searchMaxMs = 5
/** For 8 KB of the pattern's own words. Ordinary patterns such as `key.{0,200}secret` need 40 ms for them. */
const ownWordsMaxMs = 60
const compileMaxMs = 100
/** For all patterns of a rule: every process compiles them before the rule is in force. */
const compileTotalMaxMs = 400
const rememberedMax = 10_000
const measurementsMax = 3

/**
 * Checks a rule that an administrator has written, also that no pattern of it takes long. Only worker threads compile its
 * patterns, because it is not known yet how long that takes.
 */
export function createRuleCheck({ costs }: Deps): RuleCheck {
  // What an affordable pattern costs. One that was too slow is measured again: the machine may have been busy.
  const affordable = new Map<string, PatternCost>()

  function remember(pattern: string, cost: PatternCost) {
    if (affordable.has(pattern)) return
    const [oldest] = affordable.keys()
    if (oldest !== undefined && affordable.size >= rememberedMax) affordable.delete(oldest)
    affordable.set(pattern, cost)
  }

  /** A cost that is a little too high may be due to the load of the machine: then the lowest of several measurements counts. */
  async function measure(pattern: string, organizationId: string) {
    let lowest = await costs.measure(pattern, organizationId)
    for (let made = 1; made < measurementsMax; made++) {
      if ('problem' in lowest || findCostProblem(lowest) === null || !isNearLimits(lowest)) break
      const next = await costs.measure(pattern, organizationId)
      lowest = 'problem' in next ? next : lowerOf(lowest, next)
    }
    return lowest
  }

  return async (rule, organizationId) => {
    const read = readUncompiled(rule)
    if (typeof read === 'string') return { problem: read }
    const patternCosts: number[] = []
    let compileTotalMs = 0
    for (const [pattern, offset] of read.patternOffsets) {
      const cost = affordable.get(pattern) ?? (await measure(pattern, organizationId))
      const refuse = (problem: string) => ({ problem: placeComplaint(rule, offset, problem) })
      if ('problem' in cost) return refuse(describeComplaint(cost))
      const problem = findCostProblem(cost)
      if (problem !== null) return refuse(problem)
      remember(pattern, cost)
      patternCosts.push(searchCostOf(cost))
      compileTotalMs += cost.compileMs
      if (compileTotalMs > compileTotalMaxMs) {
        return refuse('the patterns up to this one take too long to compile')
      }
    }
    return { problem: null, patternCosts }
  }
}

function findCostProblem({ compileMs, searchMs, ownWordsMs }: PatternCost): string | null {
  if (searchMs > searchMaxMs || ownWordsMs > ownWordsMaxMs) {
    return 'the pattern takes too long on some texts'
  }
  return compileMs > compileMaxMs ? 'the pattern takes too long to compile' : null
}

const isNearLimits = ({ compileMs, searchMs, ownWordsMs }: PatternCost): boolean =>
  compileMs <= 3 * compileMaxMs && searchMs <= 3 * searchMaxMs && ownWordsMs <= 3 * ownWordsMaxMs

const lowerOf = (one: PatternCost, other: PatternCost): PatternCost => ({
  compileMs: Math.min(one.compileMs, other.compileMs),
  searchMs: Math.min(one.searchMs, other.searchMs),
  ownWordsMs: Math.min(one.ownWordsMs, other.ownWordsMs),
})
